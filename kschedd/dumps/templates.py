"""Templates of JSON texts that are equal except for some strings.

The first text is decoded; the values of the other texts are built from its value.

The pods of a workload differ in names, times, addresses and IDs. A text is split at the strings that a pattern finds.
The remaining pieces, and the information which of the strings are equal, are the key of its template. The template
contains the decoded value, and a function that inserts other strings into this value. All values of the template share
the parts of the value without such strings. Values also share parts that contain only times, because many values have
the same times.

Owns: the templates. The templates exist while one dump or one watch is read.
"""

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

import attrs
import msgspec

Make = Callable[[Sequence[str]], Any]

_MARK: Final = "\0"
_ESCAPED_MARK: Final = b"\\u0000"
_MARKED_KEY: Final = re.compile(rb'"\\u0000\d"\s*:')
_MOST_STRINGS: Final = 250  # in one text
_NAME: Final = 0  # the number of the string that is the name
_MOST_SHARED: Final = 1 << 12
_TIME_LENGTH: Final = len("2025-01-01T00:00:00Z")
_LONGEST_ADDRESS: Final = len("255.255.255.255")
_ADDRESS, _TIME, _LONG = range(3)  # kinds of strings, distinguished by their length
_SORTS: Final = bytes(
    _ADDRESS if length <= _LONGEST_ADDRESS else _TIME if length == _TIME_LENGTH else _LONG for length in range(1 << 10)
)

_DAY: Final = (
    rb"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
)
_TIME_TEXT: Final = rb"[12]\d{3}-" + _DAY + rb"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ"
_BYTE: Final = rb"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_ADDRESS_TEXT: Final = _BYTE + rb"(?:\." + _BYTE + rb"){3}"
_HASH: Final = rb"[0-9a-f]{64}"
_LONG_TEXT: Final = rb"[-a-z]{1,40}+://" + _HASH + rb"|[-\w./:]{1,400}+@sha256:" + _HASH
_VALUES: Final = _TIME_TEXT + b"|" + _ADDRESS_TEXT + b"|" + _LONG_TEXT
VALUES_OF_STATUS: Final = re.compile(rb'":\s*"(' + _VALUES + rb')"')
"""Values of a status that no check distinguishes: valid times, IPv4 addresses, IDs of containers and images."""

_UID: Final = rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}"
_VERSION: Final = rb'(?<="resourceVersion": ")\d{1,19}|(?<="resourceVersion":")\d{1,19}'
VALUES_OF_OBJECT: Final = re.compile(rb'":\s*"(' + _VALUES + b"|" + _UID + b"|" + _VERSION + rb')"')
"""The same for a whole object: also its uid, its version and IDs of machines."""


@attrs.define(eq=False)
class TextTemplate:
    """A template. `make` inserts strings into the template. Texts with the same template object are alike."""

    make: Make


class Templates:
    """The templates of texts that are split by the same pattern: `":` and a quoted string, which is its only group."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self._by_key: dict[tuple[bytes, bytes, bytes], TextTemplate] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def read(self, text: bytes, name: bytes = b"") -> tuple[Any, TextTemplate | None]:
        """Return the value of a JSON text, and its template; None if it has no template.

        Raises msgspec.DecodeError and ValueError.

        A string equal to `name` is not part of a template's key.
        """
        marked = None if has_marks(text) else with_mark(text, name, _NAME) if name else text
        if marked is None:
            return msgspec.json.decode(text), None
        parts = self._pattern.split(marked)
        strings = parts[1::2]
        if len(strings) > _MOST_STRINGS:
            return msgspec.json.decode(text), None
        firsts: dict[bytes, int] = {}
        numbers = bytes(map(firsts.setdefault, strings, range(1, 256)))  # the index of the first occurrence of each
        sorts = bytes(map(_SORTS.__getitem__, map(len, strings)))
        key = b"\0".join(parts[::2]), numbers, sorts
        try:
            template = self._by_key[key]
        except KeyError:
            template = self._by_key[key] = _template(parts[::2], numbers, sorts)
        return template.make(b"\0".join((name, *strings)).decode().split("\0")), template


def _template(between: Sequence[bytes], numbers: Sequence[int], sorts: Sequence[int]) -> TextTemplate:
    marks = [b'":' + mark_text(number) for number in numbers]
    text = b"".join([piece for pair in zip(between, [*marks, b""], strict=True) for piece in pair])
    times = frozenset(number for number, sort in zip(numbers, sorts, strict=True) if sort == _TIME)
    return template_of(msgspec.json.decode(text), times)


def template_of(tree: Any, shared: frozenset[int] = frozenset()) -> TextTemplate:
    """Return the template of a value in which `mark(number)` replaces strings.

    Parts that contain only strings of `shared` are stored, and reused if these strings are the same.
    """
    make = _maker(tree, shared, may_share=True)
    return TextTemplate((lambda strings: tree) if make is None else make)


def mark(number: int) -> str:
    """Return the placeholder in a value for the string with this number."""
    return f"{_MARK}{number}"


def mark_text(number: int) -> bytes:
    """Return `mark` in JSON."""
    return b'"%b%d"' % (_ESCAPED_MARK, number)


def with_mark(text: bytes, string: bytes, number: int) -> bytes | None:
    """Return a JSON text with a mark in place of a string without escapes; None if the string also occurs as a key."""
    marked = text.replace(b'"%b"' % string, mark_text(number))
    return None if _MARKED_KEY.search(marked) else marked


def has_marks(text: bytes) -> bool:
    """Return whether a JSON text contains, or might contain, strings that look like marks."""
    return _ESCAPED_MARK in text


def count_marks(tree: Any, number: int) -> int:
    """Return how many values within the value equal `mark(number)`."""
    if isinstance(tree, dict):
        return sum(count_marks(item, number) for item in tree.values())
    if isinstance(tree, list):
        return sum(count_marks(item, number) for item in tree)
    return int(tree == mark(number))


def _maker(tree: Any, shared: frozenset[int], *, may_share: bool) -> Make | None:
    """Return a function that builds the value from strings; None if it contains no marks."""
    numbers = _marks(tree)
    if not numbers:
        return None
    if type(tree) is str:
        return itemgetter(*numbers)
    shares = may_share and numbers <= shared
    children = tree.items() if type(tree) is dict else enumerate(tree)
    made = [(key, _maker(item, shared, may_share=may_share and not shares)) for key, item in children]
    changing = [(key, make) for key, make in made if make is not None]
    copied = tree.copy

    def make(strings: Sequence[str]) -> Any:
        value = copied()
        for key, make_item in changing:
            value[key] = make_item(strings)
        return value

    return _sharing(make, itemgetter(*sorted(numbers))) if shares else make


def _marks(tree: Any) -> frozenset[int]:
    """Return the numbers of the marks within a value."""
    if type(tree) is str and tree.startswith(_MARK):
        return frozenset((int(tree[1:]),))
    if type(tree) is dict:
        return frozenset().union(*map(_marks, tree.values()))
    return frozenset().union(*map(_marks, tree)) if type(tree) is list else frozenset()


def _sharing(make: Make, strings_of: Callable[[Sequence[str]], Any]) -> Make:
    kept: dict[Any, Any] = {}

    def shared(strings: Sequence[str]) -> Any:
        key = strings_of(strings)
        try:
            return kept[key]
        except KeyError:
            if len(kept) >= _MOST_SHARED:
                kept.clear()
            value = kept[key] = make(strings)
            return value

    return shared
