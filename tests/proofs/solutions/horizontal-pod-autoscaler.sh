kubectl autoscale deployment web-app -n hpa-test --cpu-percent=50 --min=1 --max=3
