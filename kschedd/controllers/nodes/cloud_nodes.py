"""Nodes of a cloud: they register with the taint `uninitialized`, which is removed after their initialization.

A node belongs to a cloud if it has the annotation `kschedd.io/cloud-provider: external`, or if the option
`cloud-provider` is set. The taint is removed after the delay in the node's `kschedd.io/cloud-init-seconds`, or the
option's delay, or by `kschedd node initialize`. A taint `uninitialized` from a manifest is removed in the same way.

When the taint is removed, the node gets the cloud's labels from its annotations: `kschedd.io/cloud-zone`,
`kschedd.io/cloud-region` and `kschedd.io/cloud-instance-type`, each under the current and the deprecated label name.
Other nodes have only the zone, region and instance type labels of their manifest.

The cloud node controller stores the times at which nodes will be initialized. Source: Kubernetes v1.34,
pkg/kubelet/kubelet_node_status.go (initialNode), cloud-provider/controllers/node/node_controller.go.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.conditions import condition
from kschedd.api.nodes import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL, Node
from kschedd.api.objects import Object
from kschedd.api.text.times import seconds
from kschedd.controllers.kubelets.node_labels import INSTANCE_TYPE
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, Conflict
from kschedd.store.objects.log import ADDED, DELETED, WatchEvent
from kschedd.store.writes import Patch, Write, patch_of

CLOUD_PROVIDER: Final = "kschedd.io/cloud-provider"
INIT_SECONDS: Final = "kschedd.io/cloud-init-seconds"
EXTERNAL: Final = "external"
UNINITIALIZED: Final = "node.cloudprovider.kubernetes.io/uninitialized"
TAINT: Final = {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}


_LABELS: Final[Mapping[str, tuple[str, str]]] = {
    "kschedd.io/cloud-zone": (ZONE_LABEL, BETA_ZONE_LABEL),
    "kschedd.io/cloud-region": (REGION_LABEL, BETA_REGION_LABEL),
    "kschedd.io/cloud-instance-type": (INSTANCE_TYPE, "beta.kubernetes.io/instance-type"),
}


def initialization(node: Object) -> dict[str, Any] | None:
    """Return the patch that initializes the node; None if the node has no taint `uninitialized`.

    Existing labels are not changed.
    """
    taints = node.spec.get("taints") or ()
    kept = [taint for taint in taints if taint.get("key") != UNINITIALIZED]
    if len(kept) == len(taints):
        return None
    stated = ((names, node.annotations.get(annotation)) for annotation, names in _LABELS.items())
    labels = {name: text for names, text in stated if text for name in names if name not in node.labels}
    return {"spec": {"taints": kept or None}, **({"metadata": {"labels": labels}} if labels else {})}


class CloudNodes:
    name: Final = "cloud-node-controller"
    kinds: Final = frozenset(("Node",))

    def __init__(self, provider: str = "", init_delay_s: float | None = None) -> None:
        self._provider = provider
        self._init_delay_s = init_delay_s  # seconds; None: a node is initialized only by a command or its annotation
        self._due: Timers[str] = Timers()
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._due.next

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        writes: list[Write] = []
        for event in events:
            node = event.new
            if not isinstance(node, Node):
                continue
            if event.type == DELETED:
                self._due.clear(node.name)
            else:
                # a node that is added without a Ready condition is registering
                registers = event.type == ADDED and condition(node.status, "Ready") is None
                writes += self.faults.each("Node", (("", node.name),), partial(self._sync, view, registers), now)
        for name in self._due.due(now):
            writes += self.faults.each("Node", (("", name),), partial(self._initialize, view), now)
        return writes

    def _sync(self, view: View, registers: bool, namespace: str, name: str, now: float) -> list[Write]:
        node = view.find("Node", "", name)
        if not isinstance(node, Node) or not self._is_clouds(node):
            return []
        tainted = initialization(node) is not None
        if not tainted and not registers:
            self._due.clear(name)
            return []
        delay = self._delay_s(node)
        if delay is not None and name not in self._due:
            created = node.metadata.get("creationTimestamp")
            self._due.set(name, max(now, (seconds(created) if created else now) + delay))
        if tainted:
            return []
        return [patch_of(node, {"spec": {"taints": [*(node.spec.get("taints") or ()), TAINT]}}, exactly=True)]

    def _initialize(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        node = view.find("Node", "", name)
        patch = initialization(node) if node is not None else None
        return [] if node is None or patch is None else [patch_of(node, patch, exactly=True)]

    def _is_clouds(self, node: Node) -> bool:
        return (node.annotations.get(CLOUD_PROVIDER) or self._provider) == EXTERNAL

    def _delay_s(self, node: Node) -> float | None:
        text = node.annotations.get(INIT_SECONDS)
        try:
            stated = None if text is None else float(text)
        except ValueError:
            stated = None
        return stated if stated is not None and 0 <= stated < float("inf") else self._init_delay_s

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Retry a patch that failed because the node was changed meanwhile."""
        if not isinstance(error, Conflict) or not isinstance(write, Patch):
            return []
        adds = any(taint.get("key") == UNINITIALIZED for taint in write.patch["spec"]["taints"] or ())
        if adds:
            return self._sync(view, True, "", write.name, now)
        return self._initialize(view, "", write.name, now)
