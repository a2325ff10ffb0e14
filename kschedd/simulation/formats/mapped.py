"""Pods of any CSV file, read with a mapping file that names the columns.

name: job_id                      # columns
created: submit_s
duration: runtime_s               # or: deleted: end_s
pods: tasks                       # pods of a row; optional, as are those that follow
priority: prio
labels: {team: owner}             # label: column
requests:                         # resource: column, or its unit as well
  cpu: cores
  memory: {column: mem_mb, unit: Mi}
  nvidia.com/gpu: gpus
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import ConfigReader, ConfigValue, in_text_order
from kschedd.config.parsing.source import read_document
from kschedd.errors import KscheddError
from kschedd.simulation.formats.making import PodShape, made_pod
from kschedd.simulation.formats.tables import TraceFault, TraceRecord, records, unique_name
from kschedd.simulation.workloads.trace import TracePod

UNITS: Final = ("m", "", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti")
_MOST_PODS: Final = 100_000
_MOST_PRIORITY: Final = 1_000_000_000


@attrs.frozen(kw_only=True)
class ColumnMapping:
    """The column for each field; "" if there is no such column."""

    name: str
    created: str
    deleted: str = ""
    duration: str = ""
    pods: str = ""
    priority: str = ""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    requests: Mapping[str, tuple[str, str]] = attrs.field(factory=dict)

    @property
    def columns(self) -> list[str]:
        """Return all columns, each once."""
        single = [self.name, self.created, self.deleted, self.duration, self.pods, self.priority]
        found = [*single, *self.labels.values(), *(column for column, _ in self.requests.values())]
        return [column for column in dict.fromkeys(found) if column]


def read_mapping(path: Path) -> ColumnMapping:
    """Read a mapping file. Raises ConfigErrors and KscheddError."""
    try:
        document = read_document(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as fault:
        raise KscheddError(f"{path}: cannot be read: {getattr(fault, 'strerror', None) or fault}") from fault
    reading = ConfigReader(str(path), document)
    fields = ConfigValue(document.value, "$", reading).fields(*(field.name for field in attrs.fields(ColumnMapping)))
    made = None
    if fields is not None:
        asks: dict[str, tuple[str, str]] = {}
        given = fields.get("requests")
        for resource, value in (given.value if given and isinstance(given.value, Mapping) else {}).items():
            at = given.at(str(resource), value)  # type: ignore[union-attr]
            each = at.fields("column", "unit") if isinstance(value, Mapping) else None
            column = (each.needed_text("column") if each else at.text()) or ""
            unit = each.text("unit", "") if each else ""
            if unit not in UNITS:
                at.wrong(f"no unit: {unit}", ", ".join(UNITS))
            asks[str(resource)] = column, unit
        if not asks:
            (given or fields.place).wrong("requests: a mapping of resources to columns is required")
        labels = fields.get("labels")
        texts = labels.value if labels and isinstance(labels.value, Mapping) else {}
        made = ColumnMapping(
            name=fields.needed_text("name") or "",
            created=fields.needed_text("created") or "",
            **{name: fields.text(name, "") for name in ("deleted", "duration", "pods", "priority")},
            labels={str(label): str(column) for label, column in texts.items()},
            requests=asks,
        )
        if made.deleted and made.duration:
            fields.place.wrong("deleted and duration exclude each other")
    if reading.faults or made is None:
        raise ConfigErrors(in_text_order(reading.faults))
    return made


def read_pods(path: Path, mapping: ColumnMapping, faults: list[TraceFault]) -> list[TracePod]:
    """Read the rows, and return their pods."""
    seen: dict[str, int] = {}
    return [pod for record in records(path, mapping.columns, faults) for pod in _row(record, mapping, seen)]


def _row(record: TraceRecord, mapping: ColumnMapping, seen: dict[str, int]) -> Iterator[TracePod]:
    name = unique_name(record, mapping.name, seen)
    created = record.seconds(mapping.created) or 0.0
    ended: float | None = None
    if mapping.duration:
        lasted = record.seconds_or_empty(mapping.duration)
        ended = None if lasted is None else created + lasted
    elif mapping.deleted:
        ended = record.seconds_or_empty(mapping.deleted)
        if ended is not None and ended < created:
            record.refuse(mapping.deleted, f"must not be before {mapping.created} ({record.cells[mapping.created]})")
    amounts: list[tuple[str, str]] = []
    for resource, (column, unit) in mapping.requests.items():
        if amount := record.number(column):
            amounts.append((resource, f"{amount:.9f}".rstrip("0").rstrip(".") + unit))
    priority = record.whole(mapping.priority, most=_MOST_PRIORITY) if mapping.priority else 0
    labels: dict[str, Any] = {label: record.cells[column] for label, column in mapping.labels.items()}
    shape = PodShape(tuple(amounts), priority)
    count = record.whole(mapping.pods, least=1, most=_MOST_PODS) if mapping.pods else 1
    for number in range(count):
        each = name if count == 1 else f"{name}-{number}"
        yield made_pod(each, shape, {"job": name, **labels}, created, ended)
