"""Feasibility of nodes: the evaluation table, the filters, and nodes with other pods on trial."""
