"""Comparison of clusters, configurations and releases, on forks in virtual time."""
