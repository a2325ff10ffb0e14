"""The commands of `kschedd` that are not verbs, for example run, repl, demo and simulate."""
