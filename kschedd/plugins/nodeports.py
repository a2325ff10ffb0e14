"""NodePorts: the host ports that a pod requests must be free on the node.

Source: Kubernetes v1.34, plugins/nodeports/node_ports.go; conflicts as in HostPortInfo.CheckConflict.
Codes: 1, a requested port is in use.
"""

from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Self

import attrs
import numpy as np

from kschedd.api.node_fit import ports_conflict
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
from kschedd.framework.fast_path import PRE_POINTS
from kschedd.framework.handle import Handle
from kschedd.framework.status import SKIP, Status, unschedulable


@attrs.frozen
class NodePorts:
    name: ClassVar = "NodePorts"
    without_pre_filter: ClassVar = 'reading "PreFilterNodePorts" from cycleState: not found'
    depends_on: ClassVar = frozenset({"node", "requested"})

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls()

    def idle_for(self, pod: Pod) -> Sequence[str]:
        return () if pod.signature.spec.host_ports else ("pre_filter",)

    def repeats_while_unchanged(self, pod: Pod, cluster: Any) -> Collection[str]:
        return PRE_POINTS

    def pre_filter(self, state: CycleState, pod: Pod, cluster: Any) -> Status | None:
        return None if pod.pod_spec.host_ports else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        wanted = pod.pod_spec.host_ports
        if not wanted or not table.ports:
            return None
        used = table.ports
        taken = [row in used and ports_conflict(wanted, used[row]) for row in rows.tolist()]
        return np.array(taken, dtype=np.int64)

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        return unschedulable("node(s) didn't have free ports for the requested pod ports")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [
            on(EventResource.POD, ActionType.DELETE, self._after_pod_deleted, by_signature=True),
            on(EventResource.NODE, ActionType.ADD),
        ]

    def _after_pod_deleted(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        if not old.node_name and not old.nominated_node_name:
            return QUEUE_SKIP
        freed = set(old.pod_spec.host_ports)
        return QUEUE if ports_conflict(pod.pod_spec.host_ports, freed) else QUEUE_SKIP
