"""Metrics: counts and durations, which components store as plain numbers, and their output in Prometheus' format."""
