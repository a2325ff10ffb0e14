"""The server side of the socket, with connections, sessions and their limits, streams, and large results."""
