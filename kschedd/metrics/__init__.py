"""Metrics: counts and durations, kept as plain numbers by their owners, and written in Prometheus' text format."""
