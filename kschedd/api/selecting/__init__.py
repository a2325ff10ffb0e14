"""Label and field selectors, node selectors, and affinity terms."""
