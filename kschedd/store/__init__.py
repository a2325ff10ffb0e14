"""The embedded API server: objects with resourceVersions, admission, watches."""
