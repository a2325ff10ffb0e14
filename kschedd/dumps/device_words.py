"""Names of drivers, attributes and capacities in a redacted dump, and the CEL expressions that select devices by them.

An expression is rewritten token by token: its string literals, the names of attributes and its own variables are
replaced by the same made-up words as in the devices, and comments are removed. The new expression is used only if it
selects the same devices of the dump as the original. If the new expression selects other devices, the expression stays
unchanged, for example if it has a regular expression or an ordering of strings. The drivers, attributes and capacities
in the expression then also stay unchanged, and so do the values of these attributes. If the expression still selects
other devices, all expressions and all names of devices stay unchanged.

Raises nothing.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any, Final

import attrs

from kschedd.api.objects import Raw
from kschedd.cel.syntax import CelSyntaxError, CelToken, tokens
from kschedd.devices.pools.inventory import Device, DeviceId, Reach, Slice
from kschedd.devices.selection import SelectorFailure, compile_error, selects
from kschedd.dumps.conversion import current
from kschedd.dumps.made_up_words import is_quantity

_NAMES: Final = frozenset("device cel optional bool int uint double string bytes list map null_type type".split())
"""Identifiers that CEL and Kubernetes define."""
_FIELDS: Final = frozenset(("driver", "attributes", "capacity", "allowMultipleAllocations"))
_OF_NUMBERS: Final = frozenset(("quantity", "isQuantity"))
_COMMENT: Final = re.compile(r"//[^\n]*")
_ESCAPED: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MATCHES: Final = ("matches", "find", "findAll")
_CLASS: Final = re.compile(r"\\.")  # \d, \w, ...


@attrs.frozen(eq=False)
class DeviceWords:
    """The made-up words of devices. `stays`: names and texts that are not replaced; None: none of them is replaced."""

    text: Callable[[str], str]
    stays: Set[str] | None = None
    kept: Set[str] = frozenset()  # expressions

    def name(self, name: str) -> str:
        """Return the new name of a driver, an attribute or a capacity, including its domain if it has one."""
        return "/".join(map(self._turned, name.split("/")))

    def keeps_value_of(self, attribute: str) -> bool:
        """Return whether the values of an attribute are not replaced."""
        return self.stays is None or attribute.rpartition("/")[2] in self.stays

    def expression(self, expression: str) -> str:
        """Return the expression with made-up words; unchanged if it must not be replaced."""
        if self.stays is None or expression in self.kept:
            return expression
        try:
            found = tokens(expression)
        except CelSyntaxError:
            return self.text(expression)
        pieces: list[str] = []
        end = 0
        for place, token in enumerate(found[:-1]):
            pieces.append(_COMMENT.sub("", expression[end : token.at]))
            pieces.append(self._token(token, place, found))
            end = token.at + len(token.text)
        return "".join(pieces)

    def _turned(self, text: str) -> str:
        return text if self.stays is None or text in self.stays else self.text(text)

    def _token(self, token: CelToken, place: int, around: list[CelToken]) -> str:
        called = around[place - 2].text if place > 1 and around[place - 1].text == "(" else ""
        if token.kind == "literal" and isinstance(token.value, str):
            if called in _OF_NUMBERS and is_quantity(token.value):
                return token.text
            return _quoted(self._pattern(token.value) if called in _MATCHES else self.name(token.value))
        if token.kind == "literal" and isinstance(token.value, bytes):
            return f"b{_quoted(self.text(token.value.decode(errors='replace')))}"
        if token.kind != "word" or around[place + 1].text == "(":
            return token.text
        if _is_field(place, around):
            is_of_device = token.text in _FIELDS and around[place - 2].text == "device"
            return token.text if is_of_device else self._turned(token.text)
        return token.text if token.text in _NAMES else self._turned(token.text)

    def _pattern(self, pattern: str) -> str:
        """Return a regular expression with made-up words; its character classes are unchanged."""
        pieces: list[str] = []
        end = 0
        for found in _CLASS.finditer(pattern):
            pieces += (self.text(pattern[end : found.start()]), found[0])
            end = found.end()
        return "".join((*pieces, self.text(pattern[end:])))


def _is_field(place: int, around: list[CelToken]) -> bool:
    """Return whether a word is a field selected from the expression before it: `.word` or `.?word`."""
    before = around[place - 2 : place] if place > 1 else around[:place]
    marks = [token.text for token in before if token.kind == "mark"]
    return marks[-1:] == ["."] or marks == [".", "?"]


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPED.get(char, char) for char in text) + '"'


def device_words(
    objects: Iterable[Raw],
    expressions: Iterable[str],
    text: Callable[[str], str],
    redacted: Callable[[DeviceWords, Raw], Raw],
) -> DeviceWords:
    """Return words with which every expression selects the same devices of the dump as the original.

    `text` makes up words; `redacted` returns a device with these words.
    """
    shapes = list(_shapes(objects))
    before = {one: _verdicts(one, shapes) for one in expressions}
    kept: frozenset[str] = frozenset()
    while True:
        words = DeviceWords(text, frozenset(name for one in kept for name in _named(one)), kept)
        after = [(words.name(driver), redacted(words, raw)) for driver, raw in shapes]
        changed = {one for one, verdicts in before.items() if _verdicts(words.expression(one), after) != verdicts}
        if not changed:
            return words
        if changed <= kept:
            return DeviceWords(text)
        kept |= changed


def _named(expression: str) -> Iterator[str]:
    """Yield the texts and names in an expression."""
    try:
        found = tokens(expression)
    except CelSyntaxError:
        return
    for place, token in enumerate(found):
        if token.kind == "literal" and isinstance(token.value, str):
            yield from token.value.split("/")
        elif token.kind == "word" and _is_field(place, found):
            yield token.text


def _shapes(objects: Iterable[Raw]) -> Iterator[tuple[str, Raw]]:
    """Yield each driver and each device once, as far as expressions can distinguish them."""
    seen: set[str] = set()
    for raw in objects:
        if raw.get("kind") != "ResourceSlice" or not isinstance(spec := current(dict(raw)).get("spec"), Mapping):
            continue
        for device in spec.get("devices") or ():
            read = {field: device[field] for field in _FIELDS if field in device}
            key = json.dumps([spec.get("driver"), read], sort_keys=True)
            if key not in seen:
                seen.add(key)
                yield str(spec.get("driver")), read


def _verdicts(expression: str, shapes: Iterable[tuple[str, Raw]]) -> list[Any]:
    """Return whether an expression compiles, and its result for each device."""
    found: list[Any] = [compile_error(expression, shares=True) is None]
    for driver, raw in shapes:
        in_slice = Slice("", driver, "", 0, 0, Reach("", True, None), False, False, ())
        try:
            found.append(selects(expression, Device(DeviceId(driver, "", ""), raw, in_slice), shares=True))
        except SelectorFailure:
            found.append(None)
    return found
