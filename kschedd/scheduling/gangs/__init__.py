"""Pods of a PodGroup, tried together."""
