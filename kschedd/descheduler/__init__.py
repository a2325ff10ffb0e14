"""The descheduler: evicts pods whose placement violates a rule or an aim, by a DeschedulerPolicy."""
