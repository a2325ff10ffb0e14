kubectl create ns color-size-settings; kubectl create cm color-settings --from-literal=color=blue -n color-size-settings; kubectl create cm size-settings --from-literal=size=medium -n color-size-settings
kubectl apply -n color-size-settings -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: pod1}
spec:
  containers: [{name: c, image: nginx:alpine, env: [{name: COLOR, valueFrom: {configMapKeyRef: {name: color-settings, key: color}}}], volumeMounts: [{name: s, mountPath: /etc/sizes}]}]
  volumes: [{name: s, configMap: {name: size-settings}}]
Y
