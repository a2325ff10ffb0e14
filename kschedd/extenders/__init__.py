"""HTTP extenders: their calls, messages and results."""
