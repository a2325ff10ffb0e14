kubectl run web-server --image=nginx -n web-server
