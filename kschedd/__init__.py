"""kschedd: kube-scheduler as one local daemon that can be looked into, stepped, changed and replayed."""
