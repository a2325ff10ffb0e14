"""Calls of out-of-tree plugins: guards, read-only views, and worker processes."""
