"""Decisions of Karpenter and Cluster Autoscaler for a whole cluster."""
