"""Nominated pods: the node to which each pod is nominated, and the counting of nominated pods in attempts."""
