"""Causes in the life of a workload: pods that are refused, wait, are replaced or have left."""
