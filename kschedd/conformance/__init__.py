"""Conformance: golden records of kube-scheduler, replayed with this scheduler (`kschedd verify`)."""
