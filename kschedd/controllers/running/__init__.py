"""Execution of controllers: their interface, turns and timers."""
