"""The published devices: slices, pools, counters, taints."""
