"""Plugins that look at devices and declared features."""
