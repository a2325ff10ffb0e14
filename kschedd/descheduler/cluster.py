"""The cluster of one descheduling cycle, and the evictions of that cycle.

An evicted pod disappears immediately, so later strategies of the same cycle do not read it. The dry run of the real
descheduler behaves in the same way. Nodes and pods keep the given order; the order of the real descheduler is random.

Source: sigs.k8s.io/descheduler, pkg/descheduler/evictions/evictions.go, pkg/descheduler/node/node.go.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.descheduler.policy import EvictionLimits
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.eviction import covers, may_go_unready
from kschedd.values import in_parts

Raw = Mapping[str, Any]
T = TypeVar("T")
Work = Generator[int, None, T]
"""Work in steps: yields the number of objects that were examined since the last pause, about 10 us each."""

READ: Final = ("Node", "Pod", "Namespace", "PodDisruptionBudget", "PriorityClass", "PersistentVolumeClaim")
"""The kinds of the objects that a cycle reads."""

PART: Final = 100  # number of objects that are examined between two pauses

_IGNORING_BUDGETS: Final = frozenset(("Pending", "Succeeded", "Failed"))


class RequestOutcome(Enum):
    """The result of an eviction request."""

    DONE = "done"
    NODE_LIMIT = "node limit"
    TOTAL_LIMIT = "total limit"
    REFUSED = "refused"  # by a budget or the namespace's limit, or the pod is gone: continue with the next pod


@attrs.frozen
class DescheduledPod:
    pod: Pod
    strategy: str
    profile: str


@attrs.frozen
class RefusedEviction:
    """A rejected eviction; `why` is PDB, MultiplePDBs, not found, node limit, namespace limit or total limit."""

    pod: Pod
    strategy: str
    profile: str
    why: str


@attrs.define(eq=False)
class DeschedulingCluster:
    """The objects that a descheduling cycle reads, the evictions so far, and the limits.

    `now_s`: time of the cycle in seconds since the epoch.
    """

    now_s: float
    nodes: Sequence[Node]
    namespaces: Mapping[str, Mapping[str, str]]  # labels by name
    budgets: Sequence[Object]
    priorities: Mapping[str, int]  # value of each PriorityClass by name
    claims: Mapping[tuple[str, str], Raw]  # PersistentVolumeClaims by namespace and name
    limits: EvictionLimits = attrs.field(factory=EvictionLimits)
    evicted: list[DescheduledPod] = attrs.field(factory=list, init=False)
    refused: list[RefusedEviction] = attrs.field(factory=list, init=False)
    _pods: dict[str, dict[str, Pod]] = attrs.field(factory=dict, init=False)  # node -> uid -> pod
    _unfinished: dict[str, list[Pod]] = attrs.field(factory=dict, init=False)  # by node, on first use
    _used: dict[str, Counter[str]] = attrs.field(factory=dict, init=False)  # requests by node and resource
    _owned: Counter[str] = attrs.field(factory=Counter, init=False)  # number of pods, by UID of the owner
    _allowed: dict[str, int] = attrs.field(factory=dict, init=False)  # disruptions left, by budget
    _by_node: Counter[str] = attrs.field(factory=Counter, init=False)
    _by_namespace: Counter[str] = attrs.field(factory=Counter, init=False)

    @classmethod
    def of(cls, objects: Iterable[Object], now_s: float, limits: EvictionLimits) -> Work["DeschedulingCluster"]:
        kinds: dict[str, list[Object]] = {}
        for part in in_parts(objects, PART):
            for obj in part:
                kinds.setdefault(obj.kind, []).append(obj)
            yield len(part)
        made = cls(
            now_s,
            [node for node in kinds.get("Node", ()) if isinstance(node, Node)],
            {obj.name: obj.labels for obj in kinds.get("Namespace", ())},
            kinds.get("PodDisruptionBudget", ()),
            {obj.name: int(obj.raw.get("value") or 0) for obj in kinds.get("PriorityClass", ())},
            {(obj.namespace, obj.name): obj.raw for obj in kinds.get("PersistentVolumeClaim", ())},
            limits,
        )
        for part in in_parts(kinds.get("Pod", ()), PART):
            for obj in part:
                assert isinstance(obj, Pod), "objects of kind Pod are pods"
                made._owned.update(owner.get("uid", "") for owner in owners(obj))
                if obj.node_name:
                    made._pods.setdefault(obj.node_name, {})[obj.uid] = obj
            yield len(part)
        made._allowed = {obj.key: int(obj.status.get("disruptionsAllowed") or 0) for obj in made.budgets}
        return made

    def all_pods_on(self, node_name: str) -> list[Pod]:
        return [*self._pods.get(node_name, {}).values()]

    def pods_on(self, node_name: str) -> list[Pod]:
        """Return the unfinished pods on the node; finished pods occupy no resources."""
        if node_name not in self._unfinished:
            self._unfinished[node_name] = [pod for pod in self.all_pods_on(node_name) if not pod.finished]
        return [*self._unfinished[node_name]]

    def pod_count(self, node_name: str) -> int:
        """Return the number of unfinished pods on the node."""
        return len(self._unfinished[node_name]) if node_name in self._unfinished else len(self.pods_on(node_name))

    def used_on(self, node_name: str) -> Mapping[str, int]:
        """Return the sum of the requests of the unfinished pods on the node, by resource."""
        used = self._used.get(node_name)
        if used is None:
            used = self._used[node_name] = Counter()
            for pod in self.pods_on(node_name):
                used.update(pod.pod_spec.requests)
        return used

    def replicas(self, owner_uid: str) -> int:
        """Return the number of pods of this owner, on all nodes."""
        return self._owned[owner_uid]

    def budgets_of(self, pod: Pod) -> list[Object]:
        return [budget for budget in self.budgets if budget.namespace == pod.namespace and covers(budget, pod)]

    def evict(self, pod: Pod, strategy: str, profile: str) -> RequestOutcome:
        """Request the eviction of a pod: check the limits first, then the PodDisruptionBudgets."""
        limits = self.limits
        if limits.total is not None and len(self.evicted) >= limits.total:
            return self._refuse(pod, strategy, profile, "total limit", RequestOutcome.TOTAL_LIMIT)
        if pod.node_name and limits.node is not None and self._by_node[pod.node_name] >= limits.node:
            return self._refuse(pod, strategy, profile, "node limit", RequestOutcome.NODE_LIMIT)
        if limits.namespace is not None and self._by_namespace[pod.namespace] >= limits.namespace:
            return self._refuse(pod, strategy, profile, "namespace limit", RequestOutcome.REFUSED)
        if pod.uid not in self._pods.get(pod.node_name, {}):
            return self._refuse(pod, strategy, profile, "not found", RequestOutcome.REFUSED)
        if why := self._refusal(pod):
            return self._refuse(pod, strategy, profile, why, RequestOutcome.REFUSED)
        self._by_node[pod.node_name] += 1
        self._by_namespace[pod.namespace] += 1
        self._owned.subtract(owner.get("uid", "") for owner in owners(pod))
        del self._pods[pod.node_name][pod.uid]
        self._unfinished.pop(pod.node_name, None)
        self._used.pop(pod.node_name, None)
        self.evicted.append(DescheduledPod(pod, strategy, profile))
        return RequestOutcome.DONE

    def _refuse(self, pod: Pod, strategy: str, profile: str, why: str, outcome: RequestOutcome) -> RequestOutcome:
        self.refused.append(RefusedEviction(pod, strategy, profile, why))
        return outcome

    def _refusal(self, pod: Pod) -> str:
        """Return why the API server would reject the eviction; "" if the eviction is accepted.

        An accepted eviction reduces the disruptions that its PodDisruptionBudget allows.
        """
        if pod.phase in _IGNORING_BUDGETS or pod.deleting:
            return ""
        budgets = self.budgets_of(pod)
        if len(budgets) > 1:
            return "MultiplePDBs"
        for budget in budgets:
            if may_go_unready(pod, budget):
                continue
            if self._allowed[budget.key] <= 0:
                return "PDB"
            self._allowed[budget.key] -= 1
        return ""


def owners(pod: Pod) -> Sequence[Raw]:
    """Return the pod's ownerReferences."""
    return pod.metadata.get("ownerReferences") or ()


def is_ready(node: Node) -> bool:
    """Return whether the node is ready; a node without a Ready condition is ready as well."""
    conditions = node.status.get("conditions") or ()
    return all(each.get("status") == "True" for each in conditions if each.get("type") == "Ready")


def objects_to_read(store: ClusterReader) -> Iterator[Object]:
    """Yield the objects of the kinds that a cycle reads."""
    for kind in READ:
        for space in store.present(kind):
            yield from space
