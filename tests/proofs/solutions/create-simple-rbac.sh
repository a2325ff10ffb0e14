kubectl create role r --verb=get,list,watch --resource=pods -n create-simple-rbac
kubectl create rolebinding r --role=r --serviceaccount=create-simple-rbac:reader-sa -n create-simple-rbac
