"""The Python library: clusters in this process, and clusters behind a socket, for notebooks, programs and tests."""
