"""Lint: finds what a Kubernetes release ignores or rejects in a manifest, or handles differently than the next one."""
