"""Dynamic resource allocation: device selectors, resource pools and the allocator, as pure functions."""
