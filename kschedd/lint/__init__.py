"""Lint: what a Kubernetes release ignores in a manifest, refuses, or treats otherwise than the next one."""
