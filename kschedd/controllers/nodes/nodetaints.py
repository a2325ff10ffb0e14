"""The NoSchedule taints of the node lifecycle controller, which reflect node conditions and keep new pods away.

Source: Kubernetes v1.34, controller/nodelifecycle/node_lifecycle_controller.go (doNoScheduleTaintingPass).
`kschedd.controllers.nodes.nodelifecycle` adds the NoExecute taints, zone by zone. This controller changes only the
taints in the table below.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.selecting.terms import NO_SCHEDULE
from kschedd.api.text.times import stamp
from kschedd.controllers.running.controller import View
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, Conflict
from kschedd.store.objects.log import DELETED, WatchEvent
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
"""(condition type, condition status) -> key of the NoSchedule taint."""

_OURS: Final = frozenset((*TAINT_OF_CONDITION.values(), UNSCHEDULABLE))


def wanted_taints(node: Raw) -> list[str]:
    """Return the keys of the NoSchedule taints that this node should have now."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    keys = (TAINT_OF_CONDITION.get((entry.get("type", ""), entry.get("status", ""))) for entry in conditions)
    wanted = [key for key in keys if key is not None]
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.append(UNSCHEDULABLE)
    return wanted


def tainted(node: Raw, at: str) -> list[Any] | None:
    """Return the node's desired taints, with new ones last and timeAdded set to `at`; None if they are up to date."""
    taints = (node.get("spec") or {}).get("taints") or []
    wanted = wanted_taints(node)
    kept = [t for t in taints if t.get("effect") != NO_SCHEDULE or t.get("key") not in _OURS or t.get("key") in wanted]
    present = {t.get("key") for t in kept if t.get("effect") == NO_SCHEDULE}
    added = [
        {"key": key, "effect": NO_SCHEDULE, "timeAdded": at} for key in dict.fromkeys(wanted) if key not in present
    ]
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
        # the patch replaces the whole list of taints, so it must apply only to this version of the Node
        return [patch_of(node, {"spec": {"taints": taints or None}}, exactly=True)]

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        if isinstance(error, Conflict) and isinstance(write, Patch):
            return self._sync(view, "", write.name, now)
        return []
