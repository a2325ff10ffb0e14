"""Devices of dynamic resource allocation: selectors, pools, the allocator. Pure functions of values."""
