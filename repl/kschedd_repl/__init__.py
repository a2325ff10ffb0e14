"""The terminal client of kschedd: `kschedd repl`."""
