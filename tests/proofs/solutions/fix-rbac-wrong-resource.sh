kubectl delete role pod-reader-role -n simple-rbac-setup; kubectl create role pod-reader-role --verb=list --resource=pods -n simple-rbac-setup
