"""The search for devices, and its results."""
