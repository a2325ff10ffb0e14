"""The start of a daemon: its options, clock, log, store, and network services other than the socket."""
