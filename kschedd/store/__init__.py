"""The embedded API server: objects with resourceVersions, admission, watches, and the journal."""
