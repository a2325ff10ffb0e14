"""Preemption: dry runs, candidates, disruption budgets, and the writes that evict the victims."""
