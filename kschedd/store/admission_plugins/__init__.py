"""The API server's admission plugins, one a file: functions of a request and an object."""
