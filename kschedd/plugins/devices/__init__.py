"""Plugins for devices and declared features."""
