"""Pods and nodes that many objects of one request are copies of."""
