"""Whole runs in virtual time: manifests, traces, scenarios."""
