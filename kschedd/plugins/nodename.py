"""NodeName: a pod with spec.nodeName is feasible only on that node.

Rules: node_name_narrows.
Source: Kubernetes v1.34 and v1.37, plugins/nodename/node_name.go (Fits, PreFilter).
Codes: 1, the node is not the named node.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import ActionType, ClusterEventWithHint, EventResource, on
from kschedd.framework.handle import Handle
from kschedd.framework.interface import PreFilterResult
from kschedd.framework.status import Status, unresolvable


@attrs.frozen
class NodeName:
    name: ClassVar = "NodeName"
    depends_on: ClassVar = None  # None: spec.nodeName is not part of the signature
    rule_of_point: ClassVar = {"pre_filter": "node_name_narrows"}

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls()

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> PreFilterResult | None:
        return PreFilterResult(frozenset((pod.node_name,))) if pod.node_name else None

    def repeats_while_unchanged(self, pod: Pod, cluster: SchedulerCache) -> Sequence[str]:
        return () if pod.node_name else ("pre_filter",)

    def idle_for(self, pod: Pod) -> Sequence[str]:
        return () if pod.node_name else ("filter",)

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        if not pod.node_name:
            return None
        wanted = table.row_of.get(pod.node_name, -1)
        elsewhere: Ints = (rows != wanted).astype(np.int64)
        return elsewhere

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        return unresolvable("node(s) didn't match the requested node name")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [on(EventResource.NODE, ActionType.ADD)]
