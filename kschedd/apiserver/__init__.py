"""Kubernetes' REST API over a cluster: what kubectl, client libraries and other schedulers talk to."""
