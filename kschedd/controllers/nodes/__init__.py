"""Controllers of nodes: lifecycle, taints, evictions and zones."""
