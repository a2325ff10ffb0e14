"""The commands of `kschedd` that are not verbs: run the daemon, open the REPL, demo, simulate, and others."""
