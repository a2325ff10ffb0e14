"""Simulation in virtual time: manifests, traces, scenarios."""
