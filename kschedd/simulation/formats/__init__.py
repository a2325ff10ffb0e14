"""Formats of traces: each module reads nodes or pods of one format into the form of `simulation.workloads.trace`."""
