"""Timestamp formatting and parsing for the store; see `kschedd.api.text.times`."""

from kschedd.api.text.times import duration_s, seconds, stamp

__all__ = ["duration_s", "seconds", "stamp"]
