"""Causes in the volumes and devices that a pod claims."""
