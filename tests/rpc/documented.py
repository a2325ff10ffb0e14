"""What a method's documentation says of its answers, as a value that answers are held against.

`returns` and `items` begin with a shape in backticks, after `An array of ` where they are one:

    {a, b?, c: SHAPE}     a map with these keys and no others; `b` may be absent
    {KEY: SHAPE}          a map with any keys: the name is in capitals
    [SHAPE]               an array
    anything else         any value
"""

import re
from collections.abc import Mapping
from typing import Any

import attrs

Shape = "Record | Table | Array | None"
_TOKEN = re.compile(r"\s*([{}\[\],:]|[^{}\[\],:]+)")


@attrs.frozen
class Record:
    fields: Mapping[str, Any]
    optional: frozenset[str]


@attrs.frozen
class Table:
    of: Any


@attrs.frozen
class Array:
    of: Any


def shape_of(text: str) -> Any:
    """The shape that a text documents; None for anything at all."""
    found = re.search(r"(An array of )?`([^`]*)`", text)
    if found is None:
        return None
    shape, rest = _shape(_TOKEN.findall(found[2]))
    assert not rest, f"after the shape in {text!r} there is {rest}"
    return Array(shape) if found[1] else shape


def _shape(tokens: list[str]) -> tuple[Any, list[str]]:
    if tokens[0] == "[":
        of, rest = _shape(tokens[1:])
        assert rest[0] == "]", rest
        return Array(of), rest[1:]
    if tokens[0] != "{":
        return None, tokens[1:]
    fields: dict[str, Any] = {}
    optional = set()
    rest = tokens[1:]
    while rest[0] != "}":
        name, rest = rest[0].strip(), rest[1:]
        of = None
        if rest[0] == ":":
            of, rest = _shape(rest[1:])
        if name.isupper():
            assert rest[0] == "}", f"{name} stands beside other keys"
            return Table(of), rest[1:]
        if name.endswith("?"):
            optional.add(name.removesuffix("?"))
        fields[name.removesuffix("?")] = of
        if rest[0] == ",":
            rest = rest[1:]
    return Record(fields, frozenset(optional)), rest[1:]


def faults(shape: Any, value: Any, path: str = "answer") -> list[str]:
    """Where the value is not as documented."""
    if shape is None or value is None:  # what may be null is said in words
        return []
    if isinstance(shape, Array):
        if not isinstance(value, list | tuple):
            return [f"{path} is {type(value).__name__}, not an array"]
        return [fault for at, item in enumerate(value) for fault in faults(shape.of, item, f"{path}[{at}]")]
    if not isinstance(value, Mapping):
        return [f"{path} is {type(value).__name__}, not a map"]
    if isinstance(shape, Table):
        return [fault for key, item in value.items() for fault in faults(shape.of, item, f"{path}.{key}")]
    found = [f"{path}.{name} is missing" for name in shape.fields if name not in value and name not in shape.optional]
    found += [f"{path}.{name} is not documented" for name in value if name not in shape.fields]
    for name, of in shape.fields.items():
        if name in value:
            found += faults(of, value[name], f"{path}.{name}")
    return found
