"""The plugin interface: extension points, statuses, cycle state, registry, and the guard around out-of-tree plugins."""
