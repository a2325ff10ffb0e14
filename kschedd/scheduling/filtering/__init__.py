"""Feasibility of nodes: the cached evaluations, the filters, and what-if copies of nodes with other pods."""
