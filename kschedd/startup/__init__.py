"""The start of a daemon, with its options, clock, log, store, and network services other than the socket."""
