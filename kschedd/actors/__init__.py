"""One module per actor: a small Trio task around one state machine without I/O."""
