"""NodeUnschedulable: a cordoned node accepts only pods that tolerate the taint of cordoned nodes.

Source: Kubernetes v1.34, plugins/nodeunschedulable/node_unschedulable.go.
Codes: 1, the node is cordoned.
"""

from typing import Any, ClassVar, Self

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import NO_SCHEDULE, Taint
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

_CORDONED = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)


def _tolerates(pod: Pod) -> bool:
    return any([toleration.tolerates(_CORDONED) for toleration in pod.pod_spec.tolerations])


@attrs.frozen
class NodeUnschedulable:
    name: ClassVar = "NodeUnschedulable"
    depends_on: ClassVar = frozenset({"node"})

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls()

    def verdict_key(self, pod: Pod, state: CycleState) -> bool:
        return _tolerates(pod)

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        if not np.count_nonzero(table.unschedulable) or _tolerates(pod):
            return None
        return table.unschedulable[rows].astype(np.int64)

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        return unresolvable("node(s) were unschedulable")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [
            on(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_TAINT,
                self._after_node,
                by_signature=True,
            ),
            on(EventResource.POD, ActionType.UPDATE_POD_TOLERATION, self._after_toleration, by_signature=True),
        ]

    def _after_node(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        was_cordoned = old is not None and old.unschedulable
        if not new.unschedulable and (old is None or was_cordoned):
            return QUEUE
        return QUEUE_SKIP

    def _after_toleration(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        if new is not None and new.uid == pod.uid and _tolerates(new):
            return QUEUE
        return QUEUE_SKIP
