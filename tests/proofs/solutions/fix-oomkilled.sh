kubectl delete simulatedbehavior oom; kubectl set resources deploy/backend-api -n webapp-backend --limits=memory=512Mi
