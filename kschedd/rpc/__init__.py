"""MessagePack-RPC, with the sans-I/O protocol, the server, sessions and their limits, and clients."""
