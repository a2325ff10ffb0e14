"""Nominated pods: who is nominated to which node, and how attempts count them."""
