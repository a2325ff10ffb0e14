"""Actors of the scheduler: cycles, bindings, waits at Permit, and calls of plugins and extenders."""
