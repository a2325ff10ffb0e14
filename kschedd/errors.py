"""The root of every error that is somebody's input or surroundings, never a bug of ours."""


class KscheddError(Exception):
    """Somebody's input or surroundings are at fault; never raised for a bug."""
