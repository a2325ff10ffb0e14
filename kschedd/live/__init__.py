"""The connection to a real Kubernetes API server: a local copy of its objects that follows every change."""
