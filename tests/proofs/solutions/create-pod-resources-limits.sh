kubectl create ns limits-test
kubectl apply -n limits-test -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: resource-limits-pod}
spec: {containers: [{name: my-container, image: "httpd:alpine", resources: {requests: {cpu: 60m, memory: 62Mi}, limits: {cpu: 600m, memory: 62Mi}}}]}
Y
