"""The verbs of the command line and the REPL, in kubectl's grammar: one implementation serves both."""
