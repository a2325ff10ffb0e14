"""Formats of traces: a module for each, which reads nodes or pods into the form of `simulation.trace`."""
