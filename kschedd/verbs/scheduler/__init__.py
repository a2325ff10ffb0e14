"""Verbs on the scheduler: queue, explain, debugger, configuration, forks, expectations."""
