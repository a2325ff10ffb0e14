"""The scheduler's cache of the cluster: node columns, counts of pods, change versions."""
