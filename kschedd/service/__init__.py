"""The requests that the daemon serves, independent of caller and encoding."""
