"""MessagePack-RPC: the protocol without I/O, the server, sessions and their limits, and clients."""
