"""HTTP extenders, with their calls, messages and results."""
