"""Strict reading of untyped values, and the faults found."""
