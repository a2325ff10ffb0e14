"""Copies of the scheduler's state, from which forks continue."""
