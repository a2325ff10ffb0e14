"""Causes of pending pods in their requirements: labels, taints, amounts, ports, affinity to other pods."""
