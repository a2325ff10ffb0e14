kubectl wait --for=jsonpath='{.status.phase}'=Bound pvc/storage-pvc -n resize-pv --timeout=30s
kubectl patch sc standard -p '{"allowVolumeExpansion":true}'; kubectl patch pvc storage-pvc -n resize-pv -p '{"spec":{"resources":{"requests":{"storage":"15Gi"}}}}'
