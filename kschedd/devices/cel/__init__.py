"""CEL expressions: parsing, compiling, running."""
