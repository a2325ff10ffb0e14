"""Changes of a `Config`, and writing one."""
