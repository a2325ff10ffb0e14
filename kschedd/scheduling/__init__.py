"""One scheduling attempt as a pure machine: sampling, filter, score, select, preempt."""
