"""Causes of pending pods that lie in the volumes and devices that they claim."""
