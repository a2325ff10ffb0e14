"""Metrics: what is counted and timed, kept as plain numbers by their owners, and written in Prometheus' text format."""
