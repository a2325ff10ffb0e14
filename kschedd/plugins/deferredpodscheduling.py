"""DeferredPodScheduling: allows a pod with a deferred resize to preempt on its node, unless the node forbids it.

A pod with a deferred resize is already running; the kubelet resizes it when its node has enough free resources. The
plugin is in the default profile if the feature resizes_preempt is enabled. The plugin ignores all other pods.

Rules: resizes_preempt, at every extension point.
Source: Kubernetes v1.37, plugins/deferredpodscheduling/deferred_pod_scheduling.go.
Codes: 1, the node is not the pod's node; 2, the node forbids preemption for resizes.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.handle import Handle
from kschedd.framework.status import Status, unresolvable

_ELSEWHERE: Final = 1
_FORBIDDEN: Final = 2


@attrs.frozen
class DeferredPodScheduling:
    name: ClassVar = "DeferredPodScheduling"
    depends_on: ClassVar = None  # None: spec.nodeName and the status are not part of the signature
    idle_points: ClassVar = frozenset({"pre_filter", "permit"})
    rule_of_point: ClassVar = dict.fromkeys(("pre_filter", "filter", "permit"), "resizes_preempt")

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls()

    def idle_for(self, pod: Pod) -> Sequence[str]:
        return () if pod.resize_deferred else ("filter",)

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        if not pod.resize_deferred:
            return None
        codes = np.zeros(len(rows), dtype=np.int64)
        for place, row in enumerate(rows.tolist()):
            node = table.nodes[row]
            if pod.node_name and table.names[row] != pod.node_name:
                codes[place] = _ELSEWHERE
            elif node is not None and _forbids(node):
                codes[place] = _FORBIDDEN
        return codes

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        if code == _ELSEWHERE:
            return unresolvable("pod assigned to different node")
        return unresolvable("node had resize preemption disabled")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_PREEMPTION_POLICY, _after_node)]


def _forbids(node: Node) -> bool:
    policy = node.spec.get("podPreemptionPolicy") or {}
    return bool(policy.get("disableResizePreemption"))


def _after_node(pod: Pod, old: Any, new: Any) -> QueueingHint:
    if not pod.resize_deferred or pod.node_name != new.name or _forbids(new):
        return QUEUE_SKIP
    return QUEUE if old is None or _forbids(old) else QUEUE_SKIP
