"""Commands that run without a daemon: on files, dumps and recordings."""
