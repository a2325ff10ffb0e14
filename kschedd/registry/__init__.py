"""Defaults, validation and what an update may change, kind by kind: the rules by which an API server keeps objects."""
