"""Scenario files: the command line's verbs on a cluster in virtual time, and what they print, in one text."""
