"""Plugins that look at resources and images."""
