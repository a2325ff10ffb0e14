"""Golden cases of kube-scheduler run against this scheduler (kschedd verify)."""
