"""Plugins that count pods by topology domain."""
