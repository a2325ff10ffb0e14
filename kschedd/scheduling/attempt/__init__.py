"""One scheduling attempt: PreFilter, the search for nodes, PostFilter, scoring, and the choice of a node."""
