"""Patches: JSON patches, merge patches and strategic merges, as pure functions."""
