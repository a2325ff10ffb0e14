"""Causes in the life cycle of a workload's pods: rejected, waiting, being replaced, or gone."""
