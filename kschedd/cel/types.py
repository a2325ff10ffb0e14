"""Static types of CEL expressions: their text forms, and unification with type parameters.

A declaration writes a type as text: `int`, `list(A)`, `map(string,dyn)`; one capital letter is a type parameter. Other
names are structs of the environment, such as `kubernetes.Namespace`. A type has two text forms, as in cel-go: one for
messages of the checker (`null`, `timestamp`), and its name (`null_type`, `google.protobuf.Timestamp`).

Source: cel-go checker (types.go, format.go), common/types/types.go.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import attrs

TIMESTAMP_NAME: Final = "google.protobuf.Timestamp"
DURATION_NAME: Final = "google.protobuf.Duration"
OPTIONAL_NAME: Final = "optional_type"
_SCALARS: Final = frozenset(("bool", "bytes", "double", "int", "string", "uint"))
_BUILT_IN: Final = _SCALARS | {"dyn", "error", "list", "map", "null_type", "type", TIMESTAMP_NAME, DURATION_NAME}
_SHOWN: Final = {"null_type": "null", TIMESTAMP_NAME: "timestamp", DURATION_NAME: "duration", "error": "!error!"}
_LONG: Final = {"timestamp": TIMESTAMP_NAME, "duration": DURATION_NAME, "null": "null_type", "optional": OPTIONAL_NAME}


@attrs.frozen
class Type:
    name: str
    params: tuple["Type", ...] = ()

    @property
    def shown(self) -> str:
        """The form for messages of the checker."""
        if not self.params:
            return _SHOWN.get(self.name, self.name)
        return f"{self.name}({', '.join(each.shown for each in self.params)})"

    @property
    def is_param(self) -> bool:
        return self.name[0] == "_" or (len(self.name) == 1 and self.name.isupper())

    @property
    def is_open(self) -> bool:
        """True if a value of another type may appear here at run time."""
        return self.name in ("dyn", "error") or self.is_param

    @property
    def is_struct(self) -> bool:
        return self.name not in _BUILT_IN and not self.params and not self.is_param

    def __str__(self) -> str:
        return self.name if not self.params else f"{self.name}({', '.join(map(str, self.params))})"


@lru_cache(maxsize=1024)
def type_of(text: str) -> Type:
    """Return the type that a declaration writes as `text`."""
    name, opening, inside = text.partition("(")
    params = tuple(map(type_of, split_types(inside[:-1], ","))) if opening else ()
    if not params and name == "list":
        params = (Type("dyn"),)
    elif not params and name == "map":
        params = (Type("dyn"), Type("dyn"))
    return Type(_LONG.get(name, name), params)


def split_types(text: str, separator: str = " ") -> list[str]:
    """Split a list of types, but not inside parentheses."""
    found, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == separator and not depth:
            found.append(text[start:place].strip())
            start = place + 1
    return [*found, text[start:].strip()] if text.strip() else []


DYN: Final = type_of("dyn")
ERROR: Final = type_of("error")
BOOL: Final = type_of("bool")
INT: Final = type_of("int")
STRING: Final = type_of("string")


def list_of(element: Type) -> Type:
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(OPTIONAL_NAME, (value,))


def unwrapped(of_type: Type) -> tuple[Type, bool]:
    """Return the type inside an optional, and whether the type was an optional."""
    return (of_type.params[0], True) if of_type.name == OPTIONAL_NAME else (of_type, False)


Mapped = dict[str, Type]


def substituted(mapped: Mapping[str, Type], of_type: Type, *, closed: bool = False) -> Type:
    """Return the type with its bound parameters replaced, and with `closed` unbound parameters replaced by `dyn`."""
    bound = mapped.get(of_type.name) if of_type.is_param else None
    if bound is not None:
        return substituted(mapped, bound, closed=closed)
    if of_type.is_param:
        return DYN if closed else of_type
    if not of_type.params:
        return of_type
    return Type(of_type.name, tuple(substituted(mapped, each, closed=closed) for each in of_type.params))


def assignable(mapped: Mapped, given: Sequence[Type], wanted: Sequence[Type]) -> Mapped | None:
    """Return the parameters after assigning each given type to the wanted type; None if the types do not fit."""
    copied = dict(mapped)
    fits = len(given) == len(wanted) and all(_fits(copied, one, two) for one, two in zip(given, wanted, strict=True))
    return copied if fits else None


def _fits(mapped: Mapped, one: Type, two: Type) -> bool:
    if two.is_param:
        valid, bound = _substitutes(mapped, one, two)
        if valid or bound:
            return valid
    if one.is_param:
        return _substitutes(mapped, two, one)[0]
    if one.name in ("dyn", "error") or two.name in ("dyn", "error"):
        return True
    if one.name == "null_type":
        return _nullable(two)
    if two.name == "null_type":
        return _nullable(one)
    if one.name != two.name:
        return False
    if one.name == "type":
        return True
    pairs = zip(one.params, two.params, strict=False)
    return len(one.params) == len(two.params) and all(_fits(mapped, mine, its) for mine, its in pairs)


def _nullable(of_type: Type) -> bool:
    return of_type.name not in _SCALARS and of_type.name not in ("list", "map", "type")


def _substitutes(mapped: Mapped, one: Type, param: Type) -> tuple[bool, bool]:
    """Return whether the type is a valid value of the parameter, and whether the parameter has a value."""
    if one == param:
        return True, True
    bound = mapped.get(param.name)
    if bound is not None:
        if one == bound:
            return True, True
        if _fits(mapped, one, bound):
            general = _most_general(one, bound)
            if _occurs_not(mapped, param, general):
                mapped[param.name] = general
            return True, True
        return False, True
    if _occurs_not(mapped, param, one):
        mapped[param.name] = one
        return True, False
    return False, False


def _occurs_not(mapped: Mapped, param: Type, within: Type) -> bool:
    if param == within:
        return False
    if within.is_param:
        bound = mapped.get(within.name)
        return bound is None or _occurs_not(mapped, param, bound)
    return all(_occurs_not(mapped, param, each) for each in within.params)


def _most_general(one: Type, other: Type) -> Type:
    return one if _less_specific(one, other) else other


def _less_specific(one: Type, other: Type) -> bool:
    if one.name == "dyn" or one.is_param:
        return True
    if other.name == "dyn" or other.is_param or one.name != other.name:
        return False
    if one.name == "type":
        return True
    pairs = zip(one.params, other.params, strict=False)
    return len(one.params) == len(other.params) and all(_less_specific(mine, its) for mine, its in pairs)


def joined(mapped: Mapped, previous: Type, current: Type) -> tuple[Mapped, Type] | None:
    """Return the common type of two elements of a literal; None if the types do not fit."""
    after = assignable(mapped, (previous,), (current,))
    return None if after is None else (after, _most_general(previous, current))
