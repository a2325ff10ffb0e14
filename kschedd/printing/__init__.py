"""API objects and the daemon's responses as text: tables, descriptions, YAML, JSON, JSONPath. Pure functions."""
