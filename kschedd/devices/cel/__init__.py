"""CEL expressions, with a parser, a compiler and an evaluator."""
