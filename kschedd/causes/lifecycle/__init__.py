"""Causes of missing or pending pods that lie in their life cycle: rejected, waiting, being replaced, or gone."""
