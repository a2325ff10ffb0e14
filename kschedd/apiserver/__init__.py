"""Kubernetes' REST API over a cluster, for kubectl, client libraries and other schedulers."""
