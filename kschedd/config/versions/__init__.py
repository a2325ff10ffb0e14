"""Releases of Kubernetes: their rules and feature gates."""
