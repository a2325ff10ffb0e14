"""Timestamp formatting and parsing for the store; see `kschedd.api.times`."""

from kschedd.api.times import duration_s, seconds, stamp

__all__ = ["duration_s", "seconds", "stamp"]
