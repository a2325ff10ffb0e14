"""MessagePack-RPC: sans-I/O protocol, server, clients, methods."""
