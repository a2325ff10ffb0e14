"""Tools for tests: single calls of a plugin, the rules for plugins as checks, scenario files as assertions."""
