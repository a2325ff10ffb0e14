"""Actors for the objects: the store, and the journal that persists the store."""
