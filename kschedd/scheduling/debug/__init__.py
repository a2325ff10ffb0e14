"""Debugging of attempts: breakpoints, the debugger, and attempts that run step by step."""
