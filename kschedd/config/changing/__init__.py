"""Changes of a `Config`, and output as a file."""
