kubectl delete simulatedbehavior probes
kubectl patch deploy webapp -n orders --type json -p '[{"op":"replace","path":"/spec/template/spec/containers/0/livenessProbe/httpGet/path","value":"/"},{"op":"replace","path":"/spec/template/spec/containers/0/readinessProbe/httpGet/path","value":"/"}]'
kubectl rollout status deploy/webapp -n orders --timeout=60s; sleep 32
