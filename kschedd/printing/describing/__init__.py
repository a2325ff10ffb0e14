"""Output of `describe`."""
