"""HTTP/1.1 for servers and clients: messages without I/O, parsed by httptools, and a server on Trio."""
