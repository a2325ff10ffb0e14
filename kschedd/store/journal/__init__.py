"""The journal, which persists every write, and code for reading, repairing and compacting the journal."""
