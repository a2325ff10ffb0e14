"""The API server's admission plugins, one per file: functions of a request and an object."""
