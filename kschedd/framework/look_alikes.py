"""Methods of a plugin class that are never called, but resemble a method that the scheduler calls.

The methods are only reported as a hint, because they need not be errors.
"""

from difflib import get_close_matches
from typing import Any, Final

from kschedd.framework import fast_path
from kschedd.framework.interface import POINTS, EnqueueExtensions, methods_of

_ALIKE: Final = 0.8  # smallest similarity of two names, as difflib's ratio
_PROTOCOLS: Final = (
    *(protocol for point in POINTS.values() for protocol in (*point.any_of, *point.extensions)),
    *(EnqueueExtensions, *fast_path.METHODS),
)
_KNOWN: Final = {
    name.replace("_", ""): name
    for name in (*(method for protocol in _PROTOCOLS for method in methods_of(protocol)), "from_args", "validate")
}


def look_alikes(cls: type[Any]) -> list[str]:
    """Return entries like "fliter (filter?)" for public methods of the class or its bases that are never called."""
    found = []
    for name in dir(cls):
        bare = name.replace("_", "").lower()
        if name.startswith("_") or name in _KNOWN.values() or not callable(getattr(cls, name, None)):
            continue
        if close := get_close_matches(bare, _KNOWN, 1, _ALIKE):
            found.append(f"{name} ({_KNOWN[close[0]]}?)")
    return found
