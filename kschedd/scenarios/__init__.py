"""Scenario files: command-line verbs on a cluster in virtual time, with their expected output, in one text."""
