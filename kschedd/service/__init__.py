"""The requests that the daemon serves, for any client and encoding."""
