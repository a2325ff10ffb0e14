"""Causes in the pod's requirements on nodes: labels, taints, amounts, ports and other pods nearby."""
