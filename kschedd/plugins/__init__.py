"""The in-tree plugins; each has its own module."""
