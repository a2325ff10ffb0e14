"""Copies of the scheduler from which forks continue."""
