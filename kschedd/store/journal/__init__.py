"""The journal: every write on disk, and reading, repairing and compacting it."""
