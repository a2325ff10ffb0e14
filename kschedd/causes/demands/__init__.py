"""Causes of pending pods that lie in their requirements: labels, taints, amounts, ports, other pods nearby."""
