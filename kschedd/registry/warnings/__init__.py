"""Warnings that the API server returns with an object it accepts."""
