kubectl apply -f artifacts/desired-policy.yaml
