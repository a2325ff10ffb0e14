"""Workloads of a run: traces, generated pods, and arrivals."""
