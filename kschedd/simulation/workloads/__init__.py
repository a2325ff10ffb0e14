"""Workloads of a run: traces, generated pods, and the arrivals that follow from them."""
