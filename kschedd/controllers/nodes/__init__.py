"""Controllers of nodes: lifecycle, taints, evictions, zones."""
