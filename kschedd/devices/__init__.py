"""Dynamic resource allocation: device selectors, resource pools, the allocator. Pure functions of values."""
