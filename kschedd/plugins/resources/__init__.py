"""Plugins for resources and images."""
