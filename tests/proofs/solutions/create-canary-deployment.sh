sed 's/engine-v2-0/engine-v2-1/;s/version: v2.0/version: v2.1/;s/nginx:1.28/nginx:1.29/' artifacts/deployment-v1.yaml | kubectl apply -n canary-deployment-ns -f -
kubectl patch svc recommendation-engine -n canary-deployment-ns --type json -p '[{"op":"remove","path":"/spec/selector/version"}]'
