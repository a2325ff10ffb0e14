"""The Kubernetes REST API of a cluster, for kubectl, client libraries and other schedulers."""
