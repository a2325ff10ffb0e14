"""The requests that the daemon serves, whoever makes them and however they are encoded."""
