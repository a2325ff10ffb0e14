"""Nominated pods: the node each is nominated to, and how attempts count them."""
