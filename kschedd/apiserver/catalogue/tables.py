"""Tables of objects, which `kubectl get` prints, with kube-apiserver's columns for each kind.

Columns and cells are the same as in kschedd's own `get` (`kschedd.printing.columns`), but each value has the column's
type. Source: Kubernetes v1.34, pkg/printers/internalversion/printers.go; apiextensions-apiserver tableconvertor for
CRDs.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from kschedd.api.objects import Raw
from kschedd.apiserver.catalogue.resources import Resource
from kschedd.printing.columns.ages import age
from kschedd.printing.columns.by_kind import Cell, RowContext, meta, spec, status
from kschedd.printing.columns.kind_tables import Definition, cell_of, definitions_of
from kschedd.printing.templates.jsonpath import JsonPathError, find
from kschedd.store.custom_resources.rule_kinds import rule_kind

_COUNTS: Final = frozenset(
    (
        ("Deployment", "Up-to-date"),
        ("Deployment", "Available"),
        ("ConfigMap", "Data"),
        ("Secret", "Data"),
        ("Event", "Count"),
    )
)
_BOOLEAN: Final = {"true": True, "false": False}


class TableColumns:
    """The columns of a resource, which compute the cells of an object."""

    def __init__(self, definitions: Sequence[Mapping[str, Any]], cells: Sequence[Cell]) -> None:
        self.definitions = definitions
        self._cells = cells

    def row(self, raw: Raw, now: float) -> list[Any]:
        around = RowContext(now)
        return [cell(raw, around) for cell in self._cells]


def row_conditions(pod: Raw) -> list[dict[str, str]]:
    """Return the conditions of a row. The row of a finished pod has a condition, by which clients can omit the row."""
    ended = {
        "Succeeded": ("Succeeded", "The pod has completed successfully."),
        "Failed": ("Failed", "The pod failed."),
    }.get(str(status(pod).get("phase")))
    if ended is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": ended[0], "message": ended[1]}]


def table_columns(resource: Resource) -> TableColumns:
    if resource.definition is not None and rule_kind(resource.definition) is None:
        return _defined(resource)
    return _built_in(resource.stored)


@cache
def _built_in(kind: str) -> TableColumns:
    listed = definitions_of(kind)
    return TableColumns([each.shown for each in listed], [_typed(kind, each) for each in listed])


def _typed(kind: str, column: Definition) -> Cell:
    """Return the cell with values of the column's data type."""
    cell = cell_of(kind, column.name)
    if column.type == "integer" or (kind, column.name) in _COUNTS:
        return lambda raw, around: _number(cell(raw, around))
    if column.type == "boolean":
        return lambda raw, around: _BOOLEAN.get(found := cell(raw, around), found)
    return cell


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value


# Custom resources


def _defined(resource: Resource) -> TableColumns:
    assert resource.definition is not None, "only custom resources have a definition"
    versions = resource.definition.spec.get("versions") or ()
    version: Raw = next((each for each in versions if each.get("name") == resource.version), {})
    wanted = version.get("additionalPrinterColumns") or ()
    name = definitions_of("")[0].shown
    if not wanted:
        wanted = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)
    definitions, cells = [name], [cell_of("", "Name")]
    for column in wanted:
        definitions.append(
            Definition(
                str(column.get("name", "")),
                str(column.get("type", "string")),
                str(column.get("format", "")),
                str(column.get("description", "")) or _described(column),
                int(column.get("priority") or 0),
            ).shown
        )
        cells.append(_by_path(str(column.get("jsonPath", "")), str(column.get("type", "string"))))
    return TableColumns(definitions, cells)


def _described(column: Mapping[str, Any]) -> str:
    return f"Custom resource definition column (in JSONPath format): {column.get('jsonPath', '')}"


def _by_path(path: str, typed: str) -> Any:
    def cell(raw: Raw, around: RowContext) -> Any:
        try:
            found = find(path, raw) if path else []
        except JsonPathError:
            found = []
        value = found[0] if found else None
        if value is None:
            return "<unknown>" if typed == "date" else None
        return age(value, around.now) if typed == "date" else value

    return cell


def scale_table(scale: Raw, now: float, version: str) -> dict[str, Any]:
    """Return the table of a Scale, which is not a stored object."""
    own = meta(scale)
    counts = [(spec(scale).get("replicas") or 0), (status(scale).get("replicas") or 0)]
    cells = [own.get("name"), *counts, age(own.get("creationTimestamp"), now)]
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": own}
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {"resourceVersion": own.get("resourceVersion")},
        "columnDefinitions": [each.shown for each in definitions_of("Scale")],
        "rows": [{"cells": cells, "object": partial}],
    }


def component_table(components: Sequence[Raw], version: str) -> dict[str, Any]:
    """Return the table of ComponentStatuses, which are not stored."""
    definitions = [each.shown for each in definitions_of("ComponentStatus")]
    rows = [
        {
            "cells": [str(meta(each).get("name", "")), "Healthy", "ok", ""],
            "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta(each)},
        }
        for each in components
    ]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {},
        "columnDefinitions": definitions,
        "rows": rows,
    }
