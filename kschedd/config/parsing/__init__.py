"""Reading untyped values strictly, and the faults found."""
