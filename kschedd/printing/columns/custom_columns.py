"""A table with columns that the user defines (`-o custom-columns`): each has a header and a path into the object.

Cells have the same text as in kubectl: The text is `<none>` if the path matches nothing; several values are separated
by commas, and maps and lists are in Go's notation.

Source: Kubernetes v1.34, kubectl pkg/cmd/get/customcolumn.go, which prints values with Go's %v.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kschedd.errors import KscheddError
from kschedd.printing.templates.jsonpath import CompiledPath, compile_path, values_at
from kschedd.printing.terminal.tables import NONE, Table


@attrs.define(eq=False)
class CustomColumnsError(KscheddError):
    """The specification of the columns cannot be parsed."""

    why: str


@attrs.frozen
class CustomColumn:
    header: str
    path: CompiledPath


def columns_of_text(text: str) -> tuple[CustomColumn, ...]:
    """Return the columns in a text such as `NAME:.metadata.name,NODE:.spec.nodeName`.

    Raises CustomColumnsError, JsonPathError.
    """
    if not text:
        raise CustomColumnsError("custom-columns format specified but no custom columns given")
    columns = []
    for part in text.split(","):
        header, colon, path = part.partition(":")
        if not colon:
            raise CustomColumnsError(f"unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>")
        columns.append(CustomColumn(header, compile_path(path)))
    return tuple(columns)


def columns_of_file(text: str) -> tuple[CustomColumn, ...]:
    """Return the columns in a file with a line of headers and a line of paths.

    Raises CustomColumnsError, JsonPathError.
    """
    lines = [line.split() for line in text.splitlines()]
    if len(lines) < 2:
        raise CustomColumnsError("custom-columns-file: must contain a line of headers and a line of paths")
    headers, paths = lines[:2]
    if len(headers) != len(paths):
        raise CustomColumnsError(
            f"number of headers ({len(headers)}) and field specifications ({len(paths)}) don't match"
        )
    return tuple(CustomColumn(header, compile_path(path)) for header, path in zip(headers, paths, strict=True))


def custom_table(columns: Sequence[CustomColumn], objects: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(tuple(_cell(column, raw) for column in columns) for raw in objects)
    return Table(tuple(column.header for column in columns), rows)


def _cell(column: CustomColumn, raw: Mapping[str, Any]) -> str:
    values = values_at(column.path, raw)
    return ",".join(map(_go_text, values)) if values else NONE


def _go_text(value: Any) -> str:
    """Return a value in the format of Go's %v."""
    if value is None:
        return "<nil>"
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{key}:{_go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go_text, value)) + "]"
    return json.dumps(value)
