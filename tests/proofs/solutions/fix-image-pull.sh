kubectl set image deploy/app nginx=nginx:1.29 -n debug
