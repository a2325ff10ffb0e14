"""Volumes, claims and StorageClasses: validation."""
