"""Nodes that are being launched, and nodes that are being drained and deleted."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.pools.autoscaler.groups import TO_BE_DELETED
from kschedd.pools.autoscaler.pods import is_recreated
from kschedd.pools.cluster import NodeLaunch
from kschedd.pools.decisions.karpenter import DISRUPTED
from kschedd.pools.settings import KARPENTER
from kschedd.store.writes import Delete, Evict, Write, patch_of

INTERRUPTED: Final = "Interrupted"  # reason of the removal of a node that the cloud provider takes back
RETRY_S: Final = 5.0  # time between two requests to evict a pod that its disruption budget keeps


@attrs.frozen(eq=False)
class StartingNode:
    """A node that is being launched.

    `first` is the Node as it registers, at `register_at`; at `ready_at` the Node gets the taints and labels of
    `launch`. With `fails`, the launch fails at `ready_at` instead. `replaces` are the nodes to remove when the node is
    ready.
    """

    launch: NodeLaunch
    first: Raw
    register_at: float
    ready_at: float
    fails: bool = False
    registered: bool = False
    replaces: Sequence[str] = ()
    reason: str = ""

    @property
    def due(self) -> float:
        return self.ready_at if self.registered or self.fails else self.register_at

    def ready(self, node: Node) -> Iterator[Write]:
        """Yield the write that makes the registered node ready for pods."""
        wanted = self.launch.raw
        taints = wanted.get("spec", {}).get("taints") or None
        labels = wanted["metadata"]["labels"]
        if self.first is not wanted:
            yield patch_of(node, {"metadata": {"labels": labels}, "spec": {"taints": taints}})


@attrs.frozen(eq=False)
class LeavingNode:
    """A node that is being drained. `next_try` is the time of the next evictions; None: the pods are terminating."""

    reason: str
    since_s: float
    next_try: float | None
    forced_at: float | None = None  # time at which the remaining pods are deleted
    refused: bool = False  # true if a budget refused an eviction

    def writes(self, name: str, pods: Sequence[Pod], now: float) -> list[Write]:
        """Return the evictions; if no pod is left, the deletion of the node."""
        left = [pod for pod in pods if is_recreated(pod) and not pod.finished]
        if not left:
            return [Delete("Node", "", name)]
        if self.forced_at is not None and now >= self.forced_at:
            return [Delete("Pod", pod.namespace, pod.name, pod.uid, 0) for pod in left]
        return [Evict(pod.namespace, pod.name, pod.uid) for pod in left if not pod.deleting]


def tainted(node: Node, autoscaler: str, now: float) -> Write:
    """Return the write that taints a node before its pods are evicted."""
    taint: dict[str, Any] = {"key": DISRUPTED.key, "effect": DISRUPTED.effect}
    if autoscaler != KARPENTER:
        taint = {"key": TO_BE_DELETED, "value": str(int(now)), "effect": "NoSchedule"}
    kept = [each for each in node.spec.get("taints") or () if each.get("key") != taint["key"]]
    return patch_of(node, {"spec": {"taints": [*kept, taint]}})


def is_leaving(node: Node) -> bool:
    """Return whether an autoscaler has tainted the node before it evicts the pods."""
    return any(taint.key in (DISRUPTED.key, TO_BE_DELETED) for taint in node.taints)


def untainted(node: Node) -> Write:
    """Return the write that removes these taints."""
    kept = [each for each in node.spec.get("taints") or () if each.get("key") not in (DISRUPTED.key, TO_BE_DELETED)]
    return patch_of(node, {"spec": {"taints": kept or None}})
