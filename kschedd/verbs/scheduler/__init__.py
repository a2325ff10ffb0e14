"""Verbs for the scheduler: queue, explain, debugger, configuration, forks, expectations."""
