"""Parameters of a method: their declaration, and the validation of a call's parameters against it.

A call passes its parameters by position, `["Pod", "default"]`, or by name, with the usual extension of MessagePack-RPC:
an array that contains only one map, `[{"kind": "Pod"}]`. The two forms of parameters are ambiguous only if the first
parameter of a method may be a map. A single map then contains names if every key is a parameter's name; otherwise it is
the first parameter.

Null for an optional parameter means that it is not given.

No I/O. Validating a call takes a few microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from kschedd.api.text.similar import similar_names
from kschedd.service.errors import BadParamsError, ParamFault

_CHECKS: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "array": lambda value: type(value) is list,
    "boolean": lambda value: type(value) is bool,
    "bytes": lambda value: type(value) is bytes,
    "integer": lambda value: type(value) is int,
    "map": lambda value: type(value) is dict,
    "null": lambda value: value is None,
    "number": lambda value: type(value) is int or (type(value) is float and math.isfinite(value)),
    "string": lambda value: type(value) is str,
}


def _check_of(type_name: str) -> Callable[[Any], bool]:
    """Return the type check for `type_name`. Raises ValueError for an unknown type."""
    checks = [_check_of_one(part.strip()) for part in type_name.split("|")]
    if len(checks) == 1:
        return checks[0]
    return lambda value: any(check(value) for check in checks)


def _check_of_one(name: str) -> Callable[[Any], bool]:
    if name.endswith("[]"):
        element = _check_of_one(name.removesuffix("[]"))
        return lambda value: type(value) is list and all(map(element, value))
    if name not in _CHECKS:
        allowed = ", ".join(_CHECKS)
        raise ValueError(f'"{name}" is no parameter type; allowed: {allowed}, each also as "TYPE[]", joined by "|"')
    return _CHECKS[name]


@attrs.frozen
class Param:
    """A parameter of a method.

    `type` is `string`, `integer`, `number`, `boolean`, `bytes`, `map`, `array`, `null` or `any`; `string[]` is an array
    of strings, `string|map` a union. `choices`, if any, are the only allowed values (for an array: the only allowed
    elements). `default` is the value of a parameter that is not given. A number or integer is from `minimum` to
    `maximum`; NaN and infinity are never allowed.
    """

    name: str
    type: str = "any"
    required: bool = True
    default: Any = None
    doc: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    _allows: Callable[[Any], bool] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        assert self.name.isidentifier(), f"{self.name!r} must be usable as a Python keyword"
        assert not (self.required and self.default is not None), f"{self.name}: required, yet with a default"
        object.__setattr__(self, "_allows", _check_of(self.type))

    @property
    def allowed(self) -> str:
        """The allowed values, as text for users."""
        if not self.choices:
            return self.type + self.range
        return f"{self.type}: " + ", ".join(f'"{choice}"' for choice in self.choices)

    @property
    def range(self) -> str:
        """The bounds of a number as text for users; "" without bounds."""
        match self.minimum, self.maximum:
            case None, None:
                return ""
            case least, None:
                return f", {_number(least)} or more"
            case None, most:
                return f", {_number(most)} at most"
            case least, most:
                return f" from {_number(least)} to {_number(most)}"

    def allows(self, value: Any) -> bool:
        if not self._allows(value):
            return False
        if type(value) is int or type(value) is float:
            return (self.minimum is None or value >= self.minimum) and (self.maximum is None or value <= self.maximum)
        if not self.choices:
            return True
        return all(element in self.choices for element in (value if type(value) is list else [value]))

    @property
    def may_be_map(self) -> bool:
        return self._allows({})


def bind(method: str, declared: Sequence[Param], given: list[Any]) -> dict[str, Any]:
    """Return a value for each declared parameter. Raises BadParamsError with all errors."""
    faults: list[ParamFault] = []
    if _is_named(declared, given):
        values: dict[str, Any] = given[0]
        names = [param.name for param in declared]
        for name in values:
            if name not in names:
                faults.append(_unknown(name, names))
    else:
        values = {param.name: value for param, value in zip(declared, given, strict=False)}
        if len(given) > len(declared):
            extra = "parameter" if len(given) == len(declared) + 1 else "parameters"
            faults.append(
                ParamFault(
                    f"{extra} after the first {len(declared)}",
                    f"{len(given) - len(declared)} more",
                    ", ".join(param.name for param in declared) or "none",
                )
            )
    bound: dict[str, Any] = {}
    for position, param in enumerate(declared, 1):
        value = values.get(param.name)
        if value is None and not param.required:
            bound[param.name] = param.default
        elif param.name not in values:
            faults.append(ParamFault(f'"{param.name}" (parameter {position})', "nothing", param.allowed))
        elif not param.allows(value):
            where = f'"{param.name}" (parameter {position})'
            faults.append(ParamFault(where, outline(value, param), param.allowed))
        else:
            bound[param.name] = value
    if faults:
        raise BadParamsError(method, tuple(faults))
    return bound


def outline(value: Any, param: Param | None = None) -> str:
    """Return a short description of a value: its type, and its text if that is short."""
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean {str(value).lower()}"
        case int():
            return f"integer {value}"
        case float():
            return f"number {value}"
        case str():
            return f'string "{value[:60]}{"…" if len(value) > 60 else ""}"'
        case bytes():
            return f"{len(value)} bytes"
        case dict():
            return f"map with {len(value)} {'entry' if len(value) == 1 else 'entries'}"
        case list():
            if param is not None:
                for index, element in enumerate(value):
                    if not param.allows([element]):
                        return f"array with {outline(element)} at index {index}"
            return f"array of {len(value)}"
        case _:
            return type(value).__name__


def _number(bound: float | None) -> str:
    return "" if bound is None else str(int(bound)) if bound == int(bound) else str(bound)


def _is_named(declared: Sequence[Param], given: list[Any]) -> bool:
    if len(given) != 1 or type(given[0]) is not dict:
        return False
    if not declared or not declared[0].may_be_map:
        return True
    return all(any(param.name == key for param in declared) for key in given[0])


def _unknown(name: str, names: list[str]) -> ParamFault:
    close = similar_names(name, names)
    hint = f' (did you mean "{close[0]}"?)' if close else ""
    return ParamFault(f'"{name[:60]}"', "a parameter of no such name", ", ".join(names) or "none", hint)
