"""The scheduler's cache of the cluster: node columns, pod counts, change versions."""
