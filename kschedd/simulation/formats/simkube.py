"""SimKube's traces (`.sktrace`): workloads and other objects with the times at which they were applied and deleted.

Controllers create the pods of the workloads. Lifetimes of pods in a trace are not used: a pod runs until its workload
is deleted or scaled down.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kschedd.api.schemas.kinds import kind_of
from kschedd.dumps import sktrace
from kschedd.simulation.formats.tables import TraceError, TraceFault
from kschedd.simulation.workloads.trace import NAMESPACE, ObjectTrace, TraceEvent

SUFFIX: Final = ".sktrace"
Raw = dict[str, Any]


def is_simkube(path: Path) -> bool:
    return Path(path.name.removesuffix(".gz")).suffix == SUFFIX


def read_objects(path: Path, nodes: tuple[Raw, ...] = ()) -> ObjectTrace:
    """Read the objects of a trace; `nodes` are nodes that exist from the start. Raises TraceError."""
    try:
        data = path.read_bytes()
        changes = sktrace.changes(gzip.decompress(data) if path.suffix == ".gz" else data)
    except (OSError, EOFError, zlib.error, sktrace.UnusableTrace) as fault:
        why = getattr(fault, "strerror", None) or str(fault)
        raise TraceError((TraceFault(str(path), 0, "", None, why),)) from fault
    events = tuple(_events(changes))
    spaces = {event.key.partition("/")[0] for event in events} - {"", NAMESPACE}
    made = {event.key.partition("/")[2] for event in events if event.kind == "Namespace"}
    return ObjectTrace(nodes, events, tuple(_namespace(name) for name in sorted(spaces - made)))


def _events(changes: list[sktrace.TraceChange]) -> Iterator[TraceEvent]:
    for change in changes:
        for action, objects in (("apply", change.applied), ("delete", change.deleted)):
            for raw in objects:
                kind, meta = kind_of(raw), raw["metadata"]
                space = (meta.get("namespace") or NAMESPACE) if kind.namespaced else ""
                key = f"{space}/{meta.get('name')}"
                if action == "delete":
                    yield TraceEvent(change.time_s, "delete", key, None, kind.name)
                else:
                    given = {**raw, "metadata": {**meta, "namespace": space}} if space else raw
                    yield TraceEvent(change.time_s, "apply", key, _without_server_fields(given), kind.name)


def _without_server_fields(raw: Raw) -> Raw:
    """Return the object as a client would apply it."""
    kept = {name: value for name, value in raw["metadata"].items() if name not in _SERVER_FIELDS}
    return {**raw, "metadata": kept}


_SERVER_FIELDS: Final = frozenset(("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"))


def _namespace(name: str) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
