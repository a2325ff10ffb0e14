kubectl scale deploy web-service --replicas=1 -n scale-down-test; sleep 2
