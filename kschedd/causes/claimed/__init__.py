"""Causes in what a pod claims: volumes and devices."""
