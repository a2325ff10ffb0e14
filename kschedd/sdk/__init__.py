"""The Python library: clusters in process and behind a socket, for notebooks, programs and tests."""
