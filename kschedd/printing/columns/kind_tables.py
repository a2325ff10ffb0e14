"""The table that `get` prints of objects of a kind. A kind without columns of its own has a name and an age."""

from collections.abc import Sequence

from kschedd.printing.columns.by_kind import (
    AGE,
    EVENTS,
    NAME,
    NAMESPACES,
    NODES,
    PODS,
    Column,
    Raw,
    RowContext,
    labels_text,
    meta,
)
from kschedd.printing.columns.storage import STORAGE
from kschedd.printing.columns.workloads import WORKLOADS
from kschedd.printing.terminal.tables import Table


def columns_of(kind: str, objects: Sequence[Raw] = ()) -> tuple[Column, ...]:
    """The columns of a kind (`Pod`), wide ones included; of a kind of another group with that name, name and age."""
    own = {"Pod": PODS, "Node": NODES, "Namespace": NAMESPACES, "Event": EVENTS}
    return own.get(kind) or WORKLOADS.get(kind) or STORAGE.get(kind) or (NAME, AGE)


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
    """The table `get` prints. `namespaces` puts a NAMESPACE column first; `prefix` goes before each name (`pod/`);
    each label of `label_columns` has a column of its own, headed by the key without its prefix."""
    columns = [column for column in columns_of(kind, objects) if wide or not column.wide]
    headers = [column.header for column in columns]
    rows = []
    for raw in objects:
        cells = [column.cell(raw, around) for column in columns]
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
