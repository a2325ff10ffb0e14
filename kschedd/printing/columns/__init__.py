"""Columns and tables of `get`."""
