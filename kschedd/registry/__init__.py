"""Rules of the API server for each kind: defaults, validation, and immutable fields."""
