"""Out-of-tree plugins: guarded calls, views, worker processes."""
