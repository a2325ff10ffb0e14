"""What the command line and the REPL can be told: verbs in kubectl's grammar, each written once for both."""
