"""MessagePack-RPC: sans-I/O protocol, server, sessions and their limits, clients."""
