"""MessagePack-RPC: protocol without I/O, server, client, methods."""
