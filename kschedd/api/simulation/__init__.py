"""Annotations that configure the behavior of simulated pods and nodes."""
