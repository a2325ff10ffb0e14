"""Export of a user's changes in a fork as manifests, which can be applied to the real cluster.

Only writes by API calls are exported (`written`: ranges of their versions), not writes of controllers or the scheduler.
An object is exported in its last state, without fields that the API server sets. Deletions and evictions are exported
as commands.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.store.creating.job_selector import without_selector
from kschedd.store.objects.log import DELETED
from kschedd.store.patches.merging import LAST_APPLIED
from kschedd.store.store import Store

_FILLED_IN: Final = frozenset(
    "uid resourceVersion creationTimestamp generation managedFields selfLink deletionTimestamp "
    "deletionGracePeriodSeconds".split()
)
_CLUSTER_IPS: Final = ("clusterIP", "clusterIPs")
_HEADLESS: Final = "None"  # a clusterIP that the user has set, not an allocated one
_LEFT_OUT: Final = frozenset(("Event", "Lease"))


@attrs.frozen
class Exported:
    manifests: Sequence[Mapping[str, Any]]
    deleted: Sequence[Mapping[str, str]]  # kind, namespace, name


def exported(store: Store, version: int, written: Sequence[tuple[int, int]]) -> Exported:
    """`version`: the version at which the fork was created."""
    latest: dict[tuple[str, str, str], tuple[Object | None, Object | None]] = {}
    events = store.written_after(version)
    for after, up_to in written:
        for event in events[max(after - version, 0) : up_to - version]:
            key = event.new.kind, event.new.namespace, event.new.name
            if event.new.kind in _LEFT_OUT:
                continue
            before = latest[key][0] if key in latest else event.old
            gone = event.type == DELETED or bool(event.new.metadata.get("deletionTimestamp"))
            latest[key] = before, None if gone else event.new
    manifests = [manifest_of(new) for before, new in latest.values() if new is not None and _differs(before, new)]
    deleted = [
        {"kind": kind, "namespace": namespace, "name": name}
        for (kind, namespace, name), (before, new) in latest.items()
        if new is None and before is not None
    ]
    return Exported(manifests, deleted)


def _differs(before: Object | None, new: Object) -> bool:
    return before is None or manifest_of(before) != manifest_of(new)


def manifest_of(obj: Object) -> dict[str, Any]:
    """Return the object without fields that the API server sets; a Node keeps its capacity."""
    raw = obj.raw
    meta = {name: value for name, value in raw["metadata"].items() if name not in _FILLED_IN}
    if LAST_APPLIED in (meta.get("annotations") or {}):
        meta["annotations"] = {name: value for name, value in meta["annotations"].items() if name != LAST_APPLIED}
    made: dict[str, Any] = {"apiVersion": raw.get("apiVersion", "v1"), "kind": raw.get("kind", obj.kind)}
    made["metadata"] = meta
    made.update({name: value for name, value in raw.items() if name not in ("metadata", "status", *made)})
    if obj.kind == "Node":
        offered = {name: value for name, value in obj.status.items() if name in ("allocatable", "capacity")}
        if offered:
            made["status"] = offered
    if obj.kind == "Service":
        spec = made.get("spec", {})
        if spec.get("clusterIP") != _HEADLESS:
            made["spec"] = {name: value for name, value in spec.items() if name not in _CLUSTER_IPS}
    return without_selector(made) if obj.kind == "Job" else made
