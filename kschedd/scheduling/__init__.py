"""The scheduling and binding cycles without I/O: filter, score, select a node, preempt and bind."""
