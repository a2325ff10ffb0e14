"""NodeDeclaredFeatures: a node must declare the features that a pod needs (`status.declaredFeatures`).

Only two of the features that nodes declare matter for scheduling. All other features matter only for updates of running
pods.

Rules: declared_features, at every extension point; 1.34 does not have the plugin.
Source: Kubernetes v1.36, plugins/nodedeclaredfeatures/nodedeclaredfeatures.go; component-helpers/nodedeclaredfeatures
(restartallcontainers, usernamespaceshostnetwork).
Codes: 1, a feature is missing.
"""

from typing import Any, ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod, PodSpec
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

RESTART_ALL: Final = "RestartAllContainersOnContainerExits"
HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"


def needed(pod: Pod) -> frozenset[str]:
    """Return the features that a node must declare for the pod."""
    return needed_by(pod.pod_spec)


def needed_by(pod_spec: PodSpec) -> frozenset[str]:
    spec = pod_spec.raw
    found = set()
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        found.add(HOST_NETWORK)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        rules = container.get("restartPolicyRules") or ()
        if any(rule.get("action") == "RestartAllContainers" for rule in rules):
            found.add(RESTART_ALL)
    return frozenset(found)


def declared(node: Node | None) -> tuple[str, ...]:
    return () if node is None else tuple(node.status.get("declaredFeatures") or ())


@attrs.frozen
class NodeDeclaredFeatures:
    name: ClassVar = "NodeDeclaredFeatures"
    idle_points: ClassVar = frozenset({"pre_filter"})
    rule_of_point: ClassVar = {"pre_filter": "declared_features", "filter": "declared_features"}
    without_pre_filter: ClassVar = 'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
    depends_on: ClassVar = frozenset({"node"})

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls()

    def verdict_key(self, pod: Pod, state: CycleState) -> frozenset[str]:
        return needed(pod)

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        wanted = needed(pod)
        if not wanted:
            return None
        nodes = table.nodes
        return np.array([not wanted.issubset(declared(nodes[row])) for row in rows.tolist()], dtype=np.int64)

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        return unresolvable("node(s) didn't match Pod's required features")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        of_nodes = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
        return [
            on(EventResource.NODE, of_nodes, _after_node, by_signature=True),
            on(EventResource.POD, ActionType.UPDATE, _after_pod, by_signature=True),
        ]


def _after_node(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QUEUE if old is None or declared(old) != declared(new) else QUEUE_SKIP


def _after_pod(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QUEUE if new.uid == pod.uid and needed(old) != needed(new) else QUEUE_SKIP
