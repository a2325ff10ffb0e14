"""The rules of Cluster Autoscaler."""
