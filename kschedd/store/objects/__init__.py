"""The stored objects by kind and name, their indexes, and the event log."""
