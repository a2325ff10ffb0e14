"""Text output of API objects and the daemon's responses: tables, descriptions, YAML, JSON, JSONPath. Pure functions."""
