"""What the scheduler knows of the cluster: node columns, counts of pods, interned values."""
