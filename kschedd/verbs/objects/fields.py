"""Documentation of the fields of kinds for `explain KIND.path`, from the schema and without a daemon."""

from collections.abc import Iterator
from typing import Any, Final

from kschedd.api.schemas.kinds import Kind, lookup
from kschedd.api.schemas.schema import (
    ANY,
    BOOL,
    BYTES,
    INT,
    INT32,
    INT_OR_STR,
    MICRO_TIME,
    NUMBER,
    QUANTITY,
    STR,
    TIME,
    Fields,
    ListOf,
    MapOf,
    schema_of,
)
from kschedd.api.text.similar import did_you_mean
from kschedd.verbs.command_line.grammar import UsageError

_LEAVES: Final = {
    STR: "string",
    BYTES: "string",
    TIME: "string",
    MICRO_TIME: "string",
    INT: "integer",
    INT32: "integer",
    NUMBER: "number",
    BOOL: "boolean",
    QUANTITY: "Quantity",
    INT_OR_STR: "IntOrString",
    ANY: "Object",
}


def kind_of_path(text: str) -> Kind | None:
    """Return the built-in kind at the start of a path such as `pod` or `pods.spec.containers`; None for other words."""
    kind = lookup(text.split("/")[0].partition(".")[0])
    return kind if kind.known and "/" not in text and kind.api_versions else None


def documentation(kind: Kind, text: str, *, recursive: bool = False) -> str:
    """Return the text of `explain` for a path. Raises UsageError if a field does not exist."""
    schema: Any = schema_of(kind.api_version, kind.name)
    if schema is None:
        raise UsageError(f"no schema for the fields of {kind.name}")
    path = text.split(".")[1:]
    group, _, version = kind.api_version.rpartition("/")
    head = (f"GROUP:      {group}\n" if group else "") + f"KIND:       {kind.name}\nVERSION:    {version}\n\n"
    for name in path:
        inner = _inner(schema)
        if not isinstance(inner, Fields) or name not in inner:
            known = inner if isinstance(inner, Fields) else ()
            raise UsageError(f'field "{name}" does not exist{did_you_mean(name, known)}')
        schema = inner[name]
    if path:
        head += f"FIELD: {path[-1]} <{type_text(schema)}>\n\n"
    inner = _inner(schema)
    if not isinstance(inner, Fields):
        return head
    return head + "FIELDS:\n" + "".join(_lines(inner, recursive, "  ", ()))


def _lines(fields: Fields, recursive: bool, indent: str, above: tuple[str, ...]) -> Iterator[str]:
    for name in sorted(fields):
        yield f"{indent}{name}\t<{type_text(fields[name])}>\n"
        inner = _inner(fields[name])
        # a type may contain itself, so each path shows a type only once
        if recursive and isinstance(inner, Fields) and inner.name not in above:
            yield from _lines(inner, recursive, indent + "  ", (*above, inner.name))


def _inner(schema: Any) -> Any:
    """Return the type of the items if the schema is a list or a map, otherwise the schema itself."""
    while isinstance(schema, ListOf | MapOf):
        schema = schema.item
    return schema


def type_text(schema: Any) -> str:
    """Return a type in kubectl's notation: string, []Container, map[string]string."""
    if isinstance(schema, ListOf):
        return f"[]{type_text(schema.item)}"
    if isinstance(schema, MapOf):
        return f"map[string]{type_text(schema.item)}"
    return schema.short_name if isinstance(schema, Fields) else _LEAVES[schema]
