"""The descheduler, which evicts pods that violate a rule or a goal of a DeschedulerPolicy."""
