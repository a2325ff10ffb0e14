"""Terminal output: width, style, safe text, tables, progress."""
