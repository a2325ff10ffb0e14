"""What `kschedd` does besides verbs: run the daemon, open the terminal client, show it all at work."""
