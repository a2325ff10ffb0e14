kubectl patch svc nginx -n web -p '{"spec":{"selector":{"app":"nginx"}}}'; sleep 2
