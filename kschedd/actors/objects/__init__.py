"""The actors of the objects: the store, and the journal that keeps it."""
