"""Actors of the scheduler: scheduling cycles, bindings, waits at Permit, and calls of plugins and extenders."""
