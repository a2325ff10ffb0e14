"""Dumps of a cluster's state in the common formats: reading, loading, saving and redaction."""
