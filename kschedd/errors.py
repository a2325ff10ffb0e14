"""Base class of all errors caused by input or environment, never by a bug."""


class KscheddError(Exception):
    """An error caused by input or environment; never raised for a bug."""
