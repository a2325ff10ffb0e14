"""The devices there are: slices, pools, counters, taints."""
