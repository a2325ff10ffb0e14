"""Answers as attrs classes: a class defines the data that is sent, its shape in METHODS.md, and its validation.

The type of a field determines its shape, and an annotation describes its meaning: `node: Annotated[str | None, "null:
it got none"]`. For the items of a list and the keys of a map, the annotation is a label: with `NodeName =
Annotated[str, "node"]`, a list of node names is shown as `[node]`, and a map keyed by node name as `{NODE: ...}`. A
field with the value `ABSENT` is omitted. A field whose key is a Python keyword ends in `_`, which is not part of the
key. An answer is a class, a list of a class, or a union of classes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

from kschedd.errors import KscheddError

A = TypeVar("A")

_WORDS: Mapping[Any, str] = {str: "text", int: "integer", float: "number", bool: "boolean", Any: "value"}
_SCHEMA_TYPES: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}
_EXPECTED: Mapping[Any, str] = {str: "text", int: "an integer", float: "a number", bool: "true or false"}


class Absent(Enum):
    """The value of a field that is absent from an answer."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


def shape(answer: type) -> str:
    """Return the shape of an answer in the notation of METHODS.md: `{pod, reserved: {node, plugins: [plugin]}}`."""
    found = _shape(answer)
    assert found, f"{answer} is no attrs class"
    return found


@cache
def returned(answer: Any) -> str:
    """Return the documentation of an answer: its type, and whether the answer is a sequence."""
    if answer is Any:
        return "Any value"
    if _is(answer, Sequence):
        (of,) = get_args(answer)
        return f"An array of `{_shape(of) or _word(of)}`"
    return ", or ".join(f"`{shape(each)}`" for each in _classes(answer))


def meanings(answer: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the fields of an answer that have an annotated meaning, each with its path."""
    known: set[tuple[str, str]] = set()
    for each in _classes(_class_in(answer) or answer):
        for name, kind in _hints(each).items():
            here = f"{path}.{_key(name)}" if path else _key(name)
            described = [(here, get_args(kind)[-1])] if get_origin(kind) is Annotated else []
            described += [] if _class_in(kind) is None else meanings(kind, here)
            yield from (one for one in described if one not in known)
            known.update(described)


def _classes(answer: Any) -> Sequence[Any]:
    """Return the attrs classes that an answer may have."""
    return [each for each in get_args(answer) or (answer,) if _is_class(each)]


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of the plain values of this type. Objects may have further keys."""
    if get_origin(kind) is Annotated:
        of, meaning = get_args(kind)[:2]
        return {**json_schema(of), "description": meaning}
    if get_origin(kind) in (Union, UnionType):
        schemas = [json_schema(each) for each in get_args(kind) if each is not Absent]
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if _is_class(kind):
        hints, names = _hints(kind), _names(kind)
        required = [key for name, key in names if not _may_be_absent(hints[name])]
        return {
            "type": "object",
            "properties": {key: json_schema(hints[name]) for name, key in names},
            "required": required,
        }
    if _is(kind, Mapping):
        return {"type": "object", "additionalProperties": json_schema(get_args(kind)[1])}
    if _is(kind, Sequence):
        return {"type": "array", "items": json_schema(get_args(kind)[0])}
    return {} if kind is Any else {"type": _SCHEMA_TYPES[kind]}


@attrs.define(eq=False)
class AnswerError(KscheddError, rpc_code="invalid"):
    """A message does not fit the class of the expected answer."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


def read(kind: Any, value: Any, where: str = "answer") -> Any:
    """Return the answer of this class or type from its plain value, as `plain` returns it. Raises AnswerError.

    An instance of the class is returned unchanged. Keys that the class does not have are ignored, because a newer
    daemon may send more.
    """
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if kind is Any or type(value) is kind:
        return value
    if get_origin(kind) in (Union, UnionType):
        return _read_one_of([each for each in get_args(kind) if each is not Absent], value, where)
    if _is_class(kind):
        if not isinstance(value, Mapping):
            raise _no_such(where, "a map", value)
        hints, given = _hints(kind), {}
        for name, key in _names(kind):
            if key in value:
                given[name] = read(hints[name], value[key], f"{where}.{key}")
            elif not _may_be_absent(hints[name]):
                raise AnswerError(f"{where}.{key}", "is missing")
        return kind(**given)
    if _is(kind, Mapping):
        if not isinstance(value, Mapping):
            raise _no_such(where, "a map", value)
        return {key: read(get_args(kind)[1], each, f"{where}.{key}") for key, each in value.items()}
    if _is(kind, Sequence):
        if not isinstance(value, list | tuple):
            raise _no_such(where, "an array", value)
        return [read(get_args(kind)[0], each, f"{where}[{at}]") for at, each in enumerate(value)]
    if get_origin(kind) is Literal:
        if value in get_args(kind):
            return value
    elif type(value) is kind or (kind is float and type(value) is int):
        return value
    raise _no_such(where, _EXPECTED.get(kind, str(kind)), value)


def _read_one_of(kinds: Sequence[Any], value: Any, where: str) -> Any:
    if value is None and NoneType in kinds:
        return None
    fault: AnswerError | None = None
    for kind in kinds:
        try:
            return read(kind, value, where)
        except AnswerError as wrong:
            fault = wrong if fault is None or kind is not NoneType else fault
    assert fault is not None, "a union has members"
    raise fault


def _no_such(where: str, expected: str, value: Any) -> AnswerError:
    return AnswerError(where, f"{expected} is expected, not {type(value).__name__}")


def plain(value: Any) -> Any:
    """Return the answer as maps, lists and values that JSON can represent; shared parts remain shared."""
    return _plain(value, {})


def fields_of(value: object) -> dict[str, Any]:
    """Return the fields of an attrs instance unchanged, without absent fields."""
    kind: Any = type(value)
    return {key: found for name, key in _names(kind) if (found := getattr(value, name)) is not ABSENT}


def extended(kind: Callable[..., A], known: attrs.AttrsInstance, **more: Any) -> A:
    """Return an answer with the fields of an existing answer and these additional fields."""
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
    """Return the shape of the values of this type; "" for strings, numbers and `Any`."""
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
    """Return the attrs class of a type; for a list or a map, the class of its items."""
    kind, _ = _unwrapped(kind)
    if _is_class(kind):
        found: type = kind
        return found
    return _class_in(get_args(kind)[-1]) if _is(kind, Mapping) or _is(kind, Sequence) else None


def _unwrapped(kind: Any) -> tuple[Any, str]:
    """Return the type without None and without its annotation, and the annotation."""
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
