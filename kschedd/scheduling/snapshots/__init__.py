"""Copies of the scheduler, from which forks go on."""
