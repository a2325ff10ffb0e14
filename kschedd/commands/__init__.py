"""The commands of `kschedd` that are not verbs, such as run, repl, demo and simulate."""
