"""The cause of a workload's trouble in one sentence, and remedies that were tried with the whole workload."""
