for ns in dev-alice dev-bob dev-charlie dev-shared staging prod; do kubectl create ns $ns
kubectl apply -n $ns -f - <<'Y'
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
Y
done
for d in alice bob charlie; do kubectl create sa $d-sa -n dev-$d; kubectl create rolebinding own --clusterrole=admin --user=$d --serviceaccount=dev-$d:$d-sa -n dev-$d; kubectl create rolebinding $d --clusterrole=view --user=$d --serviceaccount=dev-$d:$d-sa -n dev-shared; kubectl create quota q --hard=cpu=2,memory=4Gi,pods=10,services=5 -n dev-$d; done
kubectl create quota q --hard=cpu=4,memory=8Gi,pods=20,services=10 -n dev-shared
for n in staging prod; do kubectl create quota q --hard=cpu=8,memory=16Gi,pods=50,services=20 -n $n; done
