kubectl set image deploy/web-app nginx=nginx:1.22 -n rollout-test
