"""Feasibility of nodes: the cached evaluations, the filters, and nodes with trial changes of their pods."""
