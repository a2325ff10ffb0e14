"""Node pools in a cluster: launches for pending pods, and removals of nodes."""
