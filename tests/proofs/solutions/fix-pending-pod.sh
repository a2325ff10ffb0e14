kubectl apply -f - <<'Y'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: sc}
provisioner: example.com/any
Y
