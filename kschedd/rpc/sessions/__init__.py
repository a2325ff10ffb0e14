"""The server side of the socket: connections, sessions and their limits, streams, and large results."""
