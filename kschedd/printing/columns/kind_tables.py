"""The columns of each kind, which equal those of kube-apiserver, and the table that `get` prints.

`columns.json` beside this module contains the columns by kind (name, type, format, description, priority), and under ""
the columns of kinds without own columns. For kinds without own columns, kube-apiserver shows the creation time, and
`get` shows the age.
Source: Kubernetes v1.34, pkg/printers/internalversion/printers.go.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.printing.columns.by_kind import (
    NODES,
    NODES_WIDE,
    PODS,
    Cell,
    Cells,
    Raw,
    RowContext,
    age_cell,
    field,
    labels_text,
    meta,
    name_cell,
    status,
)
from kschedd.printing.columns.events import EVENTS
from kschedd.printing.columns.networking import NETWORKING
from kschedd.printing.columns.storage import STORAGE, STORAGE_WIDE
from kschedd.printing.columns.workloads import WORKLOADS, containers_cell, selector_cell, template_of
from kschedd.printing.terminal.tables import NONE, Table

_ANY: Final[Cells] = {
    "Name": name_cell,
    "Age": age_cell,
    "Created At": lambda raw, around: meta(raw).get("creationTimestamp"),
    "Containers": containers_cell(template_of, "name", NONE),
    "Images": containers_cell(template_of, "image", NONE),
    "Selector": selector_cell,
}
_CELLS: Final[Mapping[str, Cells]] = {
    "Pod": PODS,
    "Node": NODES,
    "Namespace": {"Status": field(status, "phase", "Active")},
    "Event": EVENTS,
    **WORKLOADS,
    **STORAGE,
    **NETWORKING,
}


@attrs.frozen
class Definition:
    """A column as kube-apiserver describes it; columns with a priority above 0 are shown only with `-o wide`."""

    name: str
    type: str
    format: str
    description: str
    priority: int

    @property
    def shown(self) -> dict[str, Any]:
        """The column as a TableColumnDefinition."""
        return attrs.asdict(self)


@attrs.frozen
class Column:
    header: str
    cell: Cell
    wide: bool = False


@cache
def _definitions() -> Mapping[str, Sequence[Definition]]:
    listed = json.loads(Path(__file__).with_name("columns.json").read_text(encoding="utf-8"))
    return {kind: [Definition(*column) for column in columns] for kind, columns in listed.items()}


def definitions_of(kind: str) -> Sequence[Definition]:
    """Return the columns of a kind; "" represents every kind without own columns."""
    return _definitions().get(kind) or _definitions()[""]


def cell_of(kind: str, name: str) -> Cell:
    """Return the cell function for a column name."""
    return _CELLS.get(kind, {}).get(name) or _ANY.get(name) or (lambda raw, around: "")


@cache
def columns_of(kind: str) -> tuple[Column, ...]:
    """Return the columns that `get` prints, including wide columns; a kind without columns has a name and an age."""
    if kind not in _definitions():
        return Column("NAME", name_cell), Column("AGE", age_cell)
    own = [Column(each.name.upper(), cell_of(kind, each.name), each.priority > 0) for each in definitions_of(kind)]
    if kind == "Node":
        own = [column for column in own if not column.wide]
    more = NODES_WIDE if kind == "Node" else STORAGE_WIDE.get(kind, {})
    return (*own, *(Column(header, cell, True) for header, cell in more.items()))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def table_of(
    kind: str,
    objects: Sequence[Raw],
    around: RowContext,
    *,
    wide: bool = False,
    namespaces: bool = False,
    labels: bool = False,
    label_columns: Sequence[str] = (),
    prefix: str = "",
) -> Table:
    """Return the table that `get` prints.

    With `namespaces`, the first column is NAMESPACE. `prefix` is printed before each name (`pod/`). Each label in
    `label_columns` has a column; its header is the key without prefix.
    """
    columns = [column for column in columns_of(kind) if wide or not column.wide]
    headers = [column.header for column in columns]
    rows = []
    for raw in objects:
        cells = [_text(column.cell(raw, around)) for column in columns]
        if prefix and headers[0] == "NAME":
            cells[0] = prefix + cells[0]
        if namespaces:
            cells.insert(0, str(meta(raw).get("namespace", "")))
        own = meta(raw).get("labels") or {}
        cells += [str(own.get(key, "")) for key in label_columns]
        if labels:
            cells.append(labels_text(own))
        rows.append(tuple(cells))
    if namespaces:
        headers.insert(0, "NAMESPACE")
    headers += [key.rpartition("/")[2].upper() for key in label_columns]
    if labels:
        headers.append("LABELS")
    return Table(tuple(headers), tuple(rows))
