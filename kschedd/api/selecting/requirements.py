"""Requirement: one condition on one label key, for label selectors and node selectors.

Source: Kubernetes v1.34, apimachinery/pkg/labels/selector.go (Requirement, NewRequirement).
Errors: SelectorError, with every fault in the wording of Kubernetes.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import attrs

from kschedd.api.selecting.names import label_value, qualified_name
from kschedd.errors import KscheddError

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GT: Final = "Gt"
LT: Final = "Lt"

_FEW: Final = 8  # maximum number of values to search linearly
_INTEGER: Final = re.compile("[+-]?[0-9]{1,400}", re.ASCII)


@attrs.define(eq=False)
class SelectorError(KscheddError):
    """An invalid selector; `problems` contains each fault with its path."""

    problems: tuple[str, ...]

    def __str__(self) -> str:
        unique = tuple(dict.fromkeys(self.problems))
        return unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"


def quoted(text: object) -> str:
    """Return a value quoted for error messages."""
    shown = text if isinstance(text, str) else repr(text)
    shown = shown if len(shown) <= 200 else f"{shown[:200]}..."
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


@lru_cache(1 << 10)
def integer(text: str) -> int | None:
    """Return `text` parsed as by Go's ParseInt (base 10, 64 bits), or None if it is invalid."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


@attrs.frozen(cache_hash=True)
class Requirement:
    """One condition on one label key.  `number` is the bound of Gt and Lt."""

    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: tuple[str, ...] = ()
    number: int | None = attrs.field(init=False, eq=False, repr=False)
    _members: Collection[str] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_members", self.values if len(self.values) <= _FEW else frozenset(self.values))
        ordered = self.operator in (GT, LT) and len(self.values) == 1
        object.__setattr__(self, "number", integer(self.values[0]) if ordered else None)

    def matches(self, labels: Mapping[str, str]) -> bool:
        operator = self.operator
        if operator == EXISTS:
            return self.key in labels
        if operator == DOES_NOT_EXIST:
            return self.key not in labels
        return self.accepts(labels.get(self.key))

    def accepts(self, label: str | None) -> bool:
        """Return whether a label with this value (None: absent) satisfies the requirement."""
        operator = self.operator
        if operator == IN:
            return label is not None and label in self._members
        if operator == NOT_IN:
            return label is None or label not in self._members
        if operator == EXISTS:
            return label is not None
        if operator == DOES_NOT_EXIST:
            return label is None
        if label is None or self.number is None:
            return False
        number = integer(label)
        if number is None:
            return False
        return number > self.number if operator == GT else operator == LT and number < self.number

    def __str__(self) -> str:
        if self.operator == EXISTS:
            return self.key
        if self.operator == DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator in (GT, LT):
            return f"{self.key}{'>' if self.operator == GT else '<'}{','.join(self.values)}"
        if self.operator == IN and len(self.values) == 1:
            return f"{self.key}={self.values[0]}"
        word = "in" if self.operator == IN else "notin"
        return f"{self.key} {word} ({','.join(sorted(self.values))})"


@attrs.frozen
class KeyRule:
    """All requirements on one label key, combined so that the time of a test does not depend on their number.

    `allowed` is None if no requirement lists values; `above` and `below` are the strictest bounds of Gt and Lt.
    """

    allowed: frozenset[str] | None
    refused: frozenset[str]
    required: bool  # the label must exist
    excluded: bool  # the label must not exist
    above: int | None
    below: int | None

    @classmethod
    def of(cls, requirements: Iterable[Requirement]) -> "KeyRule":
        allowed: set[str] | None = None
        refused: set[str] = set()
        required = excluded = False
        bounds: dict[str, list[int]] = {GT: [], LT: []}
        for each in requirements:
            if each.operator == IN:
                allowed = set(each.values) if allowed is None else allowed.intersection(each.values)
            elif each.operator == NOT_IN:
                refused.update(each.values)
            elif each.operator == EXISTS:
                required = True
            elif each.operator == DOES_NOT_EXIST:
                excluded = True
            elif each.number is None:
                allowed = set()  # if the bound is not a number, no label satisfies Gt or Lt
            else:
                bounds[each.operator].append(each.number)
        above, below = max(bounds[GT], default=None), min(bounds[LT], default=None)
        required = required or allowed is not None or above is not None or below is not None
        shown = None if allowed is None else frozenset(allowed)
        return cls(shown, frozenset(refused), required, excluded, above, below)

    def accepts(self, label: str | None) -> bool:
        """Return whether a label with this value (None: absent) satisfies all of the requirements."""
        if label is None:
            return not self.required
        if self.excluded or label in self.refused or (self.allowed is not None and label not in self.allowed):
            return False
        if self.above is None and self.below is None:
            return True
        number = integer(label)
        return (
            number is not None
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )


def requirement_problems(key: str, operator: str, values: Sequence[str], path: str) -> list[str]:
    """Return the errors for which upstream rejects the requirement (NewRequirement); `operator` must be valid."""
    dot = f"{path}." if path else ""
    problems = []
    if wrong_key := qualified_name(key):
        problems.append(f"{dot}key: Invalid value: {quoted(key)}: {'; '.join(wrong_key)}")
    shown = "[" + ", ".join(map(quoted, values[:10])) + "]"
    if operator in (IN, NOT_IN):
        if not values:
            why = "for 'in', 'notin' operators, values set can't be empty"
            problems.append(f"{dot}values: Invalid value: {shown}: {why}")
    elif operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            why = "values set must be empty for exists and does not exist"
            problems.append(f"{dot}values: Invalid value: {shown}: {why}")
    else:
        if len(values) != 1:
            why = "for 'Gt', 'Lt' operators, exactly one value is required"
            problems.append(f"{dot}values: Invalid value: {shown}: {why}")
        for index, value in enumerate(values):
            if integer(value) is None:
                why = "for 'Gt', 'Lt' operators, the value must be an integer"
                problems.append(f"{dot}values[{index}]: Invalid value: {quoted(value)}: {why}")
    for index, value in enumerate(values):
        if wrong := label_value(value):
            problems.append(f"{dot}values[{index}][{key}]: Invalid value: {quoted(value)}: {'; '.join(wrong)}")
    return problems
