"""The scheduling queue as a state machine without I/O."""
