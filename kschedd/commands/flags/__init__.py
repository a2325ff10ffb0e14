"""Flags that several commands have in common."""
