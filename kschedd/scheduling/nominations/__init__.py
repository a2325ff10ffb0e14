"""Nominated pods: the node to which each pod is nominated, and their use in attempts."""
