"""Node pools: which nodes an autoscaler adds and removes, as functions of values."""
