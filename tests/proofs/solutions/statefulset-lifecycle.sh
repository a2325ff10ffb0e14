kubectl apply -n statefulset-test -f - <<'Y'
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, image: busybox, command: [sh, -c, "echo -n initial_data > /data/test; sleep inf"], volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
Y
kubectl rollout status sts/db -n statefulset-test --timeout=60s; kubectl scale sts db --replicas=1 -n statefulset-test
