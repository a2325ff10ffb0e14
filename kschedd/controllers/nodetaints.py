"""The node lifecycle controller's taints: node conditions are mirrored as taints, which the scheduler filters by.

Source: Kubernetes v1.34, controller/nodelifecycle/node_lifecycle_controller.go (doNoScheduleTaintingPass,
processTaintBaseEviction). Upstream adds the NoExecute taints at a limited rate per zone; here they are added at once,
and rate limiting is left to eviction. Only the taints in the tables below are ever changed.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.terms import NO_EXECUTE, NO_SCHEDULE
from kschedd.controllers.conditions import condition
from kschedd.controllers.controller import View
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, Conflict
from kschedd.store.log import DELETED, WatchEvent
from kschedd.store.times import stamp
from kschedd.store.writes import Patch, Write, patch_of

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

TAINT_OF_CONDITION: Final[Mapping[tuple[str, str], str]] = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
"""(condition type, its status) -> key of the NoSchedule taint."""

_OURS_NO_SCHEDULE: Final = frozenset((*TAINT_OF_CONDITION.values(), UNSCHEDULABLE))
_OURS_NO_EXECUTE: Final = frozenset((NOT_READY, UNREACHABLE))


def wanted_taints(node: Raw) -> list[tuple[str, str]]:
    """The (key, effect) of every condition taint that this node should have now."""
    status = node.get("status") or {}
    wanted = []
    for entry in status.get("conditions") or ():
        key = TAINT_OF_CONDITION.get((entry.get("type", ""), entry.get("status", "")))
        if key is not None:
            wanted.append((key, NO_SCHEDULE))
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.append((UNSCHEDULABLE, NO_SCHEDULE))
    ready = condition(status, "Ready")
    if ready is not None:
        key = TAINT_OF_CONDITION.get(("Ready", ready.get("status", "")))
        if key is not None:
            wanted.append((key, NO_EXECUTE))
    return wanted


def _ours(taint: Raw, has_ready: bool) -> bool:
    effect = taint.get("effect")
    if effect == NO_SCHEDULE:
        return taint.get("key") in _OURS_NO_SCHEDULE
    # Without a Ready condition the node's state is unknown: NoExecute taints stay unchanged.
    return effect == NO_EXECUTE and has_ready and taint.get("key") in _OURS_NO_EXECUTE


def tainted(node: Raw, at: str) -> list[Any] | None:
    """The desired taints of the node, new ones last with timeAdded `at`; None if they are up to date."""
    taints = (node.get("spec") or {}).get("taints") or []
    wanted = wanted_taints(node)
    has_ready = condition(node.get("status") or {}, "Ready") is not None
    kept = [t for t in taints if not _ours(t, has_ready) or (t.get("key"), t.get("effect")) in wanted]
    present = {(t.get("key"), t.get("effect")) for t in kept}
    added = [{"key": k, "effect": e, "timeAdded": at} for k, e in dict.fromkeys(wanted) if (k, e) not in present]
    return None if len(kept) == len(taints) and not added else [*kept, *added]


class NodeTaints:
    name: Final = "node-condition-taints"
    kinds: Final = frozenset(("Node",))
    next_deadline: Final = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        nodes = dict.fromkeys(("", event.new.name) for event in events if event.type != DELETED)
        return self.faults.each("Node", nodes, partial(self._sync, view), now)

    def _sync(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        node = view.find("Node", "", name)
        if not isinstance(node, Node):
            return []
        taints = tainted(node.raw, stamp(now))
        if taints is None:
            return []
        # The patch replaces the whole list, so it must apply only to the version it was computed from.
        return [patch_of(node, {"spec": {"taints": taints or None}}, exactly=True)]

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        if isinstance(error, Conflict) and isinstance(write, Patch):
            return self._sync(view, "", write.name, now)
        return []
