"""Go templates and JSONPath."""
