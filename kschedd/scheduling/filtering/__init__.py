"""Which nodes are feasible: the evaluation table, the filters, and nodes as they would be with other pods."""
