"""Plugins for volumes and claims."""
