"""Causes of missing or pending pods in their life cycle: rejected, waiting, being replaced, or deleted."""
