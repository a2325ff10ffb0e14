"""ServiceAffinity: keeps a Service's pods on nodes with equal values of some labels, and spreads them by other labels.

The filter applies only to pods that a Service selects. A node must have the same values of `affinityLabels` as the node
of the first similar pod: a pod in the same namespace that has all labels of the pod to schedule. Labels in the pod's
nodeSelector are not compared. For each label in `antiAffinityLabelsPreference`, a node scores higher if fewer of the
Service's pods are on nodes with the same value. The plugin belongs to older releases; now InterPodAffinity replaces it.

Source: Kubernetes v1.22, plugins/serviceaffinity/service_affinity.go. Differences: "First" means first in the visiting
order of nodes, and Services are sorted by name; upstream defines neither order. Codes: 1, the node's labels differ.
Units: raw scores are numbers of pods.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import from_map
from kschedd.api.selecting.terms import PodAffinityTerm
from kschedd.cache.counts import pod_matcher, spread_matcher
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import ActionType, ClusterEventWithHint, EventResource, on
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Status, unschedulable


@attrs.frozen
class ServiceAffinityArgs:
    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


@attrs.define(eq=False)
class _Alike:
    """The number of similar pods on each node, by node name."""

    by_node: dict[str, int]

    def clone(self) -> "_Alike":
        return _Alike(self.by_node.copy())


@attrs.frozen(eq=False)
class ServiceAffinity:
    name: ClassVar = "ServiceAffinity"
    args_type: ClassVar = ServiceAffinityArgs
    without_pre_filter: ClassVar = 'error reading "PreFilterServiceAffinity" from cycleState: not found'
    args: ServiceAffinityArgs
    cluster: SchedulerCache

    @classmethod
    def from_args(cls, args: ServiceAffinityArgs, handle: Handle) -> Self:
        return cls(args, handle.cluster)

    # -- filter -----------------------------------------------------------------------------------------------

    def idle_for(self, pod: Pod) -> Sequence[str]:
        return () if self.args.affinity_labels else ("filter",)

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        if self.args.affinity_labels:
            state.data[self.name] = self._alike(pod, cluster)
        return None

    def _alike(self, pod: Pod, cluster: SchedulerCache) -> _Alike:
        term = PodAffinityTerm(from_map(pod.labels), "", frozenset((pod.namespace,)), None)
        names = cluster.table.names
        return _Alike({names[row]: n for row, n in cluster.counts.matching(pod_matcher((term,))).by_row.items()})

    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> None:
        self._count(state, pod, other, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> None:
        self._count(state, pod, other, node, -1)

    def _count(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo, amount: int) -> None:
        alike: _Alike | None = state.data.get(self.name)
        if alike is None or other.namespace != pod.namespace:
            return
        if all(other.labels.get(key) == value for key, value in pod.labels.items()):
            total = alike.by_node.get(node.name, 0) + amount
            if total:
                alike.by_node[node.name] = total
            else:
                alike.by_node.pop(node.name, None)

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        wanted = self._wanted(state, pod)
        if not wanted:
            return None
        differs = np.zeros(len(rows), dtype=np.bool_)
        for label, value in wanted.items():
            column = table.label(label)
            differs |= column.ids[rows] != column.numbers.get(value, -2)
        return differs.astype(np.int64)

    def _wanted(self, state: CycleState, pod: Pod) -> dict[str, str]:
        """Return the labels that a feasible node must have."""
        labels = self.args.affinity_labels
        selector = pod.pod_spec.node_selector
        wanted = {label: selector[label] for label in labels if label in selector}
        alike: _Alike | None = state.data.get(self.name)
        if len(wanted) < len(labels) and alike is not None and alike.by_node and self._service_of(pod) is not None:
            table = self.cluster.table
            first = next((row for row in table.order.tolist() if table.names[row] in alike.by_node), None)
            node = None if first is None else table.nodes[first]
            if node is not None:
                wanted.update((key, node.labels[key]) for key in labels if key not in wanted and key in node.labels)
        return wanted

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        return unschedulable("node(s) didn't match service affinity")

    def _service_of(self, pod: Pod) -> Mapping[str, str] | None:
        """Return the selector of the first Service that selects the pod."""
        services = self.cluster.of_kind("Service")
        for key in sorted(services):
            service = services[key]
            labels: Mapping[str, str] | None = service.spec.get("selector")
            if labels and service.namespace == pod.namespace:
                if all(pod.labels.get(name) == value for name, value in labels.items()):
                    return labels
        return None

    # -- score ------------------------------------------------------------------------------------------------

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        domains = [table.label(label).ids[rows] for label in self.args.anti_affinity_labels_preference]
        state.data[f"{self.name}/score"] = domains
        labels = self._service_of(pod)
        if labels is None:
            return np.zeros(len(rows), dtype=np.int64)
        matcher = spread_matcher(pod.namespace, from_map(labels))
        return self.cluster.counts.matching(matcher).rows()[rows]

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        total = int(scores.sum())
        points = np.zeros(len(scores), dtype=np.float64)
        domains: list[Ints] = state.data[f"{self.name}/score"]
        for ids in domains:
            there = ids >= 0
            if not there.any():
                continue
            by_value = np.zeros(int(ids.max()) + 1, dtype=np.int64)
            np.add.at(by_value, ids[there], scores[there])
            of_label = np.full(len(scores), float(MAX_NODE_SCORE))
            if total > 0:
                of_label = MAX_NODE_SCORE * ((total - by_value[ids]) / float(total))
            points += np.where(there, of_label / float(len(domains)), 0.0)
        return points.astype(np.int64)

    # -- events -----------------------------------------------------------------------------------------------

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [
            on(EventResource.POD, ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE),
            on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            on(EventResource.SERVICE, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE),
        ]
