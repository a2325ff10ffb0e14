"""Strict reading of untyped values, with the faults found."""
