"""Kubernetes objects: quantities, selectors, manifests, and the typed views that scheduling reads."""
