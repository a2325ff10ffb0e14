"""Tools for testing plugins: random clusters, and the rules of the plugin interface as checks."""
