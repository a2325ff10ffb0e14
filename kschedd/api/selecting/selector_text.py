"""Selectors in kubectl's syntax: `-l 'app=web,tier!=db,env in (a,b),!old'`, `--field-selector status.phase=Pending`.

Source: Kubernetes v1.34, apimachinery/pkg/labels/selector.go (Parse) and fields/selector.go (ParseSelector).
Errors: SelectorTextError, with the position in the text.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.selecting.names import qualified_name
from kschedd.api.selecting.requirements import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    LT,
    NOT_IN,
    Requirement,
    quoted,
    requirement_problems,
)
from kschedd.api.selecting.selectors import LabelSelector, interned
from kschedd.errors import KscheddError

_MANY: Final = 500  # minimum number of terms of a long selector; each takes 10 µs to parse
_TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+|$)")
_SYMBOLS: Final = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">", ""))
_BINARY: Final = {"=": IN, "==": IN, "!=": NOT_IN, "in": IN, "notin": NOT_IN, ">": GT, "<": LT}


@attrs.define(eq=False)
class SelectorTextError(KscheddError):
    """Text that cannot be parsed as a selector."""

    text: str
    why: str

    def __str__(self) -> str:
        if self.why.startswith("invalid "):
            return self.why
        text = self.text if len(self.text) <= 200 else f"{self.text[:200]}..."
        return f'invalid selector "{text}": {self.why}'


def has_many_terms(text: str | None) -> bool:
    """Return whether parsing this selector would block the event loop for too long."""
    return text is not None and text.count(",") > _MANY


class _Words:
    """The token stream of a selector; "" marks the end of input."""

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
        return self.refused(f"found '{self.ahead[:63]}', expected: {what}")

    def refused(self, why: str) -> SelectorTextError:
        return SelectorTextError(self._text, why)

    def word(self, what: str) -> str:
        if self.ahead in _SYMBOLS:
            raise self.expected(what)
        return self.take()


def parse_selector_text(text: str) -> LabelSelector:
    """Parse a label selector; empty text matches everything."""
    words = _Words(text)
    requirements = []
    while words.ahead:
        if words.ahead != "!" and words.ahead in _SYMBOLS:
            raise words.expected("!, identifier, or 'end of string'")
        try:
            requirements.append(_requirement(words))
        except SelectorTextError as error:
            raise SelectorTextError(text, f"unable to parse requirement: {error.why}") from None
        if not words.ahead:
            break
        if words.ahead != ",":
            raise words.expected("',' or 'end of string'")
        words.take()
        if words.ahead != "!" and words.ahead in _SYMBOLS:
            raise words.expected("identifier after ','")
    return interned(requirements)


def _requirement(words: _Words) -> Requirement:
    if words.ahead == "!":
        words.take()
        if words.ahead in ("in", "notin"):  # after an exclamation mark, these words are operators, not keys
            raise words.expected("identifier")
        return Requirement(_key(words), DOES_NOT_EXIST)
    key = _key(words)
    if words.ahead in ("", ","):
        return Requirement(key, EXISTS)
    symbol = words.ahead
    if symbol not in _BINARY:
        raise words.expected("in, notin, =, ==, !=, gt, lt")
    words.take()
    if symbol in ("in", "notin"):
        values = _values(words)
    else:
        values = ("" if words.ahead in ("", ",") else words.word("identifier"),)
    problems = requirement_problems(key, _BINARY[symbol], values, "")
    if problems:
        raise words.refused(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return Requirement(key, _BINARY[symbol], values)


def _key(words: _Words) -> str:
    key = words.word("identifier")
    if wrong := qualified_name(key):
        raise words.refused(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(wrong)}")
    return key


def _values(words: _Words) -> tuple[str, ...]:
    """Parse a list in parentheses; two adjacent commas enclose an empty value."""
    if words.ahead != "(":
        raise words.refused(f"found '{words.ahead[:63]}' expected: '('")
    words.take()
    if words.ahead != "," and words.ahead != ")" and words.ahead in _SYMBOLS:
        raise words.expected("',', ')' or identifier")
    values = []
    while True:
        values.append("" if words.ahead in (",", ")") else words.word("',', or identifier"))
        if words.ahead not in (",", ")"):
            raise words.expected("',' or ')'")
        if words.take() == ")":
            return tuple(sorted(set(values)))  # error messages contain the index of a value in this order


OLD_NODE_NAME: Final = "spec.host"
"""The former field label of pods for `spec.nodeName`, still supported."""
_SUCCESSFUL: Final = "status.successful"
_FIELD_OF: Final = {OLD_NODE_NAME: "spec.nodeName", _SUCCESSFUL: "status.succeeded"}
"""Field labels that differ from the path of their field."""
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
    """A field selector, which matches if all its requirements on an object's fields hold."""

    requirements: tuple[FieldSelectorRequirement, ...] = ()
    _by_path: Mapping[str, tuple[frozenset[str], frozenset[str]]] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        values: dict[str, tuple[set[str], set[str]]] = {}
        for each in self.requirements:
            values.setdefault(each.path, (set(), set()))[not each.equal].add(each.value)
        object.__setattr__(
            self, "_by_path", {path: (frozenset(same), frozenset(other)) for path, (same, other) in values.items()}
        )

    @property
    def paths(self) -> int:
        """The number of different field paths that `matches` reads."""
        return len(self._by_path)

    def matches(self, raw: Mapping[str, Any]) -> bool:
        for path, (same, other) in self._by_path.items():
            value = field_text(raw, path)
            if value in other or (same and same != {value}):
                return False
        return True


def field_text(raw: Mapping[str, Any], path: str) -> str:
    """Return the value of a field as a field selector compares it; "" if absent."""
    found: Any = raw
    for name in _FIELD_OF.get(path, path).split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    if found is None:
        # StatefulSets also support this label, but do not have the field.
        if path == _SUCCESSFUL and raw.get("kind") == "Job":
            return "0"
        return "false" if path in _FALSE_WHEN_ABSENT else ""
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, str | int | float) else ""


_PIECE: Final = re.compile(r"(?:\\.|[^,\\]|\\$)+", re.DOTALL)
_FIELD: Final = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_VALUE: Final = re.compile(r"\\(?P<escaped>.?)|(?P<bare>[,=])", re.DOTALL)


def parse_field_selector(text: str) -> FieldSelector:
    r"""Parse a field selector.  The escapes in a value are `\,` `\=` and `\\`."""
    requirements = []
    for piece in sorted(_PIECE.findall(text)):
        match = _FIELD.fullmatch(piece)
        if match is None:
            raise SelectorTextError(text, f"invalid selector: '{text[:200]}'; can't understand '{piece[:200]}'")
        path, operator, value = match.groups()
        requirements.append(FieldSelectorRequirement(path, operator != "!=", _unescaped(text, value)))
    return FieldSelector(tuple(requirements))


def _unescaped(text: str, value: str) -> str:
    def char(found: re.Match[str]) -> str:
        if (bare := found["bare"]) is not None:
            why = f"unescaped character in value: {ord(bare)}"
            raise SelectorTextError(text, f"invalid field selector: {why}")
        if found["escaped"] not in ("\\", ",", "="):
            raise SelectorTextError(text, f"invalid field selector: invalid escape sequence: {found[0]}")
        return found["escaped"]

    return _VALUE.sub(char, value)
