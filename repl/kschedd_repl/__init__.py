"""The terminal client of kschedd."""
