"""HTTP/1.1 for whoever serves or asks: messages without I/O on httptools, and a server on Trio."""
