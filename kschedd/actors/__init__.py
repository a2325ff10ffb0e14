"""The actors, one module each: small Trio tasks around one state machine without I/O."""
