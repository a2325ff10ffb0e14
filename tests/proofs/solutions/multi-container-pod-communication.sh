kubectl create ns multi-container-logging
kubectl apply -n multi-container-logging -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: communication-pod}
spec:
  containers: [{name: web-server, image: nginx, volumeMounts: [{name: logs-volume, mountPath: /var/log/nginx}]}, {name: logger, image: busybox, command: [tail, -f, /var/log/nginx/access.log], volumeMounts: [{name: logs-volume, mountPath: /var/log/nginx}]}]
  volumes: [{name: logs-volume, emptyDir: {}}]
Y
