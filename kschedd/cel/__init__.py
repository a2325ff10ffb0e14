"""CEL expressions: parser, compiler and evaluator."""
