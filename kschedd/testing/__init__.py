"""Tools for tests: single calls of a plugin, checks of the rules for plugins, scenario files as assertions."""
