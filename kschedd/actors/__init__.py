"""The actors: one module per actor, which is a small Trio task around one state machine without I/O."""
