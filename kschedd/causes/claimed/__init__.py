"""Causes of pending pods in their claims of volumes and devices."""
