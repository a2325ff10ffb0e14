"""Dynamic resource allocation: validation of claims, slices and classes."""
