"""The journal: persists every write; reading, repairing and compacting it."""
