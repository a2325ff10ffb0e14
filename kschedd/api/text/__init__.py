"""Text formats: YAML and JSON documents, times, durations, numbers, addresses."""
