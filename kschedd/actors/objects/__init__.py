"""Actors of the objects: the store, and the journal that persists it."""
