"""Causes in what a pod demands of nodes: labels, taints, amounts, ports and other pods nearby."""
