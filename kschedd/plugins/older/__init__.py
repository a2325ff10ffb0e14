"""Plugins of older releases of kube-scheduler."""
