"""One module per in-tree plugin; nothing but plugins."""
