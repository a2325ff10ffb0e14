"""Selectors in kubectl's syntax: `-l 'app=web,tier!=db,env in (a,b),!old'`, `--field-selector status.phase=Pending`.

Source: Kubernetes v1.34, apimachinery/pkg/labels/selector.go (Parse) and fields/selector.go (ParseSelector).
Errors: SelectorTextError, with the position in the text.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.requirements import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    LT,
    NOT_IN,
    Requirement,
    requirement_problems,
)
from kschedd.api.selectors import LabelSelector, interned
from kschedd.errors import KscheddError

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+|$)")
_SYMBOLS: Final = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">", ""))
_BINARY: Final = {"=": IN, "==": IN, "!=": NOT_IN, "in": IN, "notin": NOT_IN, ">": GT, "<": LT}


@attrs.define(eq=False)
class SelectorTextError(KscheddError):
    """Text that cannot be parsed as a selector."""

    text: str
    why: str

    def __str__(self) -> str:
        text = self.text if len(self.text) <= 200 else f"{self.text[:200]}..."
        return f'invalid selector "{text}": {self.why}'


class _Words:
    """Token stream of a selector; "" is the end of input."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match.group(1) for match in _TOKEN.finditer(text)]
        self._next = 0

    @property
    def ahead(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def take(self) -> str:
        token = self.ahead
        self._next += 1
        return token

    def expected(self, what: str) -> SelectorTextError:
        found = f"found '{self.ahead[:63]}'" if self.ahead else "found the end"
        return SelectorTextError(self._text, f"{found}, expected: {what}")

    def word(self, what: str) -> str:
        if self.ahead in _SYMBOLS:
            raise self.expected(what)
        return self.take()


def parse_selector_text(text: str) -> LabelSelector:
    """Parse a label selector; empty text matches everything."""
    words = _Words(text)
    requirements = []
    while words.ahead:
        requirements.append(_requirement(words))
        if not words.ahead:
            break
        if words.ahead != ",":
            raise words.expected("',' or the end")
        words.take()
        if words.ahead != "!" and words.ahead in _SYMBOLS:
            raise words.expected("a label key after ','")
    problems = [p for r in requirements for p in requirement_problems(r.key, r.operator, r.values, "")]
    if problems:
        raise SelectorTextError(text, "; ".join(problems))
    return interned(requirements)


def _requirement(words: _Words) -> Requirement:
    if words.ahead == "!":
        words.take()
        return Requirement(words.word("a label key"), DOES_NOT_EXIST)
    key = words.word("'!' or a label key")
    if words.ahead in ("", ","):
        return Requirement(key, EXISTS)
    symbol = words.ahead
    if symbol not in _BINARY:
        raise words.expected("in, notin, =, ==, !=, >, <")
    words.take()
    if symbol in ("in", "notin"):
        return Requirement(key, _BINARY[symbol], _values(words))
    value = "" if words.ahead in ("", ",") else words.word("a value")
    return Requirement(key, _BINARY[symbol], (value,))


def _values(words: _Words) -> tuple[str, ...]:
    """A list in parentheses; two adjacent commas enclose an empty value."""
    if words.ahead != "(":
        raise words.expected("'('")
    words.take()
    values = []
    while True:
        values.append("" if words.ahead in (",", ")") else words.word("',', ')' or a value"))
        if words.ahead not in (",", ")"):
            raise words.expected("',' or ')'")
        if words.take() == ")":
            return tuple(dict.fromkeys(values))


_FALSE_WHEN_ABSENT: Final = frozenset(("spec.unschedulable", "spec.hostNetwork"))


@attrs.frozen
class FieldSelectorRequirement:
    path: str
    equal: bool
    value: str

    def matches(self, raw: Mapping[str, Any]) -> bool:
        return (field_text(raw, self.path) == self.value) is self.equal


@attrs.frozen
class FieldSelector:
    """Field selector: all requirements on an object's fields must hold."""

    requirements: tuple[FieldSelectorRequirement, ...] = ()

    def matches(self, raw: Mapping[str, Any]) -> bool:
        return all(requirement.matches(raw) for requirement in self.requirements)


def field_text(raw: Mapping[str, Any], path: str) -> str:
    """The value of a field as a field selector compares it; "" where absent."""
    found: Any = raw
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    if found is None:
        return "false" if path in _FALSE_WHEN_ABSENT else ""
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, str | int | float) else ""


_PIECE: Final = re.compile(r"(?:\\.|[^,\\])+", re.DOTALL)
_FIELD: Final = re.compile(r"([^=!\\]+)(==|!=|=)((?:\\.|[^=\\])*)", re.DOTALL)


def parse_field_selector(text: str) -> FieldSelector:
    r"""Parse a field selector.  `\,` `\=` `\\` in a value are escapes."""
    requirements = []
    for piece in _PIECE.findall(text):
        match = _FIELD.fullmatch(piece.strip())
        if match is None:
            raise SelectorTextError(text, f"'{piece[:63]}' is not FIELD=VALUE, FIELD==VALUE or FIELD!=VALUE")
        path, operator, value = match.groups()
        requirements.append(FieldSelectorRequirement(path.strip(), operator != "!=", re.sub(r"\\(.)", r"\1", value)))
    return FieldSelector(tuple(requirements))
