"""Changes of a `Config`, and its output as a file."""
