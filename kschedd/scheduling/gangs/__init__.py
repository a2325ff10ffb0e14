"""Scheduling of the pods of a PodGroup together."""
