kubectl scale deploy web-app --replicas=2 -n scale-test; sleep 2
