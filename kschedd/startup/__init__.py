"""What a daemon begins with: its options, clock, log, store, and doors besides the socket."""
