"""Workloads, Jobs and autoscalers: validation."""
