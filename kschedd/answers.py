"""Answers as attrs classes: what is sent, its shape in METHODS.md and the check of answers come from one class.

The type of a field gives its shape, an annotation its meaning: `node: Annotated[str | None, "null: it got none"]`. Of
the items of a list or a map an annotation is the label: by `NodeName = Annotated[str, "node"]` a list of these is
`[node]`, and a map by them `{NODE: ...}`. A field that may be `ABSENT` is left out where it is. A field whose key is a
word of Python's ends in `_`, which its key does not have.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

A = TypeVar("A")

_WORDS: Mapping[Any, str] = {str: "text", int: "integer", float: "number", bool: "boolean", Any: "value"}


class Absent(Enum):
    """The value of a field that an answer does not have."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


def shape(answer: type) -> str:
    """Return the shape of an answer as METHODS.md has it: `{pod, reserved: {node, plugins: [plugin]}}`."""
    found = _shape(answer)
    assert found, f"{answer.__name__} is no attrs class"
    return found


def returned(answer: Any) -> str:
    """Return the text on an answer: its shape, and whether there are several."""
    if _is(answer, Sequence):
        return f"An array of `{shape(get_args(answer)[0])}`"
    return f"`{shape(answer)}`"


def meanings(answer: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the fields of an answer that have a meaning of their own, each with its path."""
    answer = _class_in(answer) or answer
    for name, kind in _hints(answer).items():
        here = f"{path}.{_key(name)}" if path else _key(name)
        if get_origin(kind) is Annotated:
            yield here, get_args(kind)[-1]
        if _class_in(kind) is not None:
            yield from meanings(kind, here)


def plain(value: Any) -> Any:
    """Return the answer in maps, lists and values that have a form in JSON; parts that are shared stay shared."""
    return _plain(value, {})


def fields_of(value: object) -> dict[str, Any]:
    """Return the fields of an attrs instance, as they are, without absent ones."""
    kind: Any = type(value)
    return {key: found for name, key in _names(kind) if (found := getattr(value, name)) is not ABSENT}


def extended(kind: Callable[..., A], known: attrs.AttrsInstance, **more: Any) -> A:
    """Return an answer that has the fields of a known one and these."""
    return kind(**attrs.asdict(known, recurse=False), **more)


@cache
def _names(answer: Any) -> tuple[tuple[str, str], ...]:
    """Return each field's name and its key."""
    return tuple((field.name, _key(field.name)) for field in attrs.fields(answer))


def _key(name: str) -> str:
    return name.removesuffix("_")


@cache
def _hints(answer: Any) -> dict[str, Any]:
    return get_type_hints(answer, include_extras=True)


def _plain(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, str | int | float | None):
        return value
    made = known.get(id(value))
    if made is not None:
        return made
    if attrs.has(type(value)):
        made = {name: _plain(each, known) for name, each in fields_of(value).items()}
    elif isinstance(value, Mapping):
        made = {key: _plain(each, known) for key, each in value.items()}
    else:
        made = [_plain(each, known) for each in value]
    known[id(value)] = made
    return made


def _shape(kind: Any) -> str:
    """Return the shape of values of a type; "" for texts, numbers and what may be anything."""
    kind, _ = _unwrapped(kind)
    if _is_class(kind):
        hints = _hints(kind)
        parts = ((f"{key}{'?' * _may_be_absent(hints[name])}", _shape(hints[name])) for name, key in _names(kind))
        return "{" + ", ".join(f"{name}: {part}" if part else name for name, part in parts) + "}"
    args = get_args(kind)
    if _is(kind, Mapping):
        return f"{{{_word(args[0]).upper()}: {_shape(args[1]) or _word(args[1])}}}"
    if _is(kind, Sequence):
        return f"[{_shape(args[0]) or _word(args[0])}]"
    return ""


def _is_class(kind: Any) -> bool:
    return isinstance(kind, type) and attrs.has(kind)


def _class_in(kind: Any) -> type | None:
    """Return the attrs class of a type, or of the items of a list or a map of it."""
    kind, _ = _unwrapped(kind)
    if _is_class(kind):
        found: type = kind
        return found
    return _class_in(get_args(kind)[-1]) if _is(kind, Mapping) or _is(kind, Sequence) else None


def _unwrapped(kind: Any) -> tuple[Any, str]:
    """Return the type without None and annotation, and the annotation."""
    label = ""
    if get_origin(kind) is Annotated:
        kind, label = get_args(kind)[:2]
    if get_origin(kind) in (Union, UnionType):
        rest = [each for each in get_args(kind) if each not in (NoneType, Absent)]
        kind = rest[0] if len(rest) == 1 else Any
    return kind, label


def _may_be_absent(kind: Any) -> bool:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return Absent in get_args(kind)


def _word(kind: Any) -> str:
    kind, label = _unwrapped(kind)
    return label or _WORDS.get(kind, "value")


def _is(kind: Any, of: type) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, of)
