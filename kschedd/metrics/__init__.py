"""Metrics: counts and durations, stored as plain numbers by their owners, and output in Prometheus' text format."""
