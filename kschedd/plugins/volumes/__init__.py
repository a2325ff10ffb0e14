"""Plugins that look at volumes and claims."""
