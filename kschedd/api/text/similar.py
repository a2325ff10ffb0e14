"""Suggestions for misspelled names: `; did you mean "pods"?`. Every message with a suggestion uses this module."""

import difflib
from collections.abc import Iterable
from typing import Final

_LONGEST: Final = 80  # maximum number of compared characters of a word
_ALIKE: Final = 0.6  # smallest similarity of two names, as difflib's ratio


def similar_names(word: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return known names that are similar to a misspelled name, best first; case is ignored."""
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold()[:_LONGEST], folded, n=most, cutoff=_ALIKE)
    return tuple(folded[name] for name in near)


def did_you_mean(word: str, known: Iterable[str], most: int = 2) -> str:
    """Return `; did you mean "pods"?`, or "" if no known name is similar."""
    near = similar_names(word, known, most)
    return f"; did you mean {' or '.join(map(quoted, near))}?" if near else ""


def allowed_names(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean "pods"?`, or `: allowed are pods, nodes` if no known name is similar."""
    names = list(known)
    return did_you_mean(word, names) or f": allowed are {', '.join(names)}"


def quoted(name: str) -> str:
    return f'"{name}"'
