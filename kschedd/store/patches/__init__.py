"""Patches: JSON patches, merge patches and strategic merge patches, as pure functions."""
