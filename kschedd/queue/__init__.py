"""The scheduling queue as a pure machine."""
