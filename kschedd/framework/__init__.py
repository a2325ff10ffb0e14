"""The plugin interface: extension points, statuses, cycle state, registry, and the guard of out-of-tree plugins."""
