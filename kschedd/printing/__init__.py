"""API objects and the daemon's answers as text: tables, descriptions, YAML, JSON, JSONPath. Pure functions."""
