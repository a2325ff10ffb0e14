"""Out-of-tree plugins: guarded calls, read-only views, and worker processes."""
