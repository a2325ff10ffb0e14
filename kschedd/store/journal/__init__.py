"""The journal, which persists every write, and the code for reading, repairing and compacting it."""
