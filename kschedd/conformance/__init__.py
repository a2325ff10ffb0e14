"""Conformance: golden records of kube-scheduler run against this scheduler (`kschedd verify`)."""
