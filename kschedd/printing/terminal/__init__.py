"""The terminal: width, style, safe text, tables, progress."""
