"""RemovePodsViolatingTopologySpreadConstraint, which moves pods from domains with many pods to domains with few.

Source: sigs.k8s.io/descheduler, pkg/framework/plugins/removepodsviolatingtopologyspreadconstraint.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import SpreadConstraint, parse_spread_constraint
from kschedd.descheduler.cluster import DeschedulingCluster, RequestOutcome, Work
from kschedd.descheduler.evictor import Evictor
from kschedd.descheduler.node_fit import fits_any_other, selects, tolerates_hard_taints
from kschedd.descheduler.policy import SpreadArgs


@attrs.frozen(eq=False)
class _Constraint:
    """A constraint with a pod that has it: the pod's affinity and tolerations decide which nodes count."""

    spread: SpreadConstraint
    pod: Pod

    @classmethod
    def of(cls, raw: Any, pod: Pod) -> "_Constraint":
        return cls(parse_spread_constraint(raw, pod.labels), pod)

    @property
    def nodes_key(self) -> tuple[object, ...]:
        """A value that is equal for constraints whose domains and nodes are the same."""
        spread, spec = self.spread, self.pod.pod_spec
        affinity = (tuple(sorted(spec.node_selector.items())), spec.required_node_affinity)
        return (
            *(spread.topology_key, spread.honor_affinity, spread.honor_taints),
            affinity if spread.honor_affinity else None,
            spec.tolerations if spread.honor_taints else None,
        )

    @property
    def key(self) -> tuple[object, ...]:
        """A value that is equal for constraints with the same effect."""
        return self.spread.max_skew, self.spread.selector, *self.nodes_key

    def counts(self, node: Node) -> bool:
        if self.spread.honor_affinity and not selects(self.pod, node):
            return False
        return not self.spread.honor_taints or tolerates_hard_taints(self.pod, node)


@attrs.frozen(eq=False)
class _Nodes:
    """The nodes of the cycle, and those that count for a constraint, which equal constraints share."""

    all: Sequence[Node]
    by_name: Mapping[str, Node]
    _counting: dict[tuple[object, ...], list[Node]] = attrs.field(factory=dict, init=False)

    def counting(self, constraint: _Constraint) -> list[Node]:
        """Return the nodes with the topology key that count for the constraint."""
        key = constraint.nodes_key
        if key not in self._counting:
            label = constraint.spread.topology_key
            self._counting[key] = [node for node in self.all if label in node.labels and constraint.counts(node)]
        return self._counting[key]


Alike = Mapping[tuple[tuple[str, str], ...], Sequence[Pod]]
"""Pods of a namespace by their labels."""


def spread(name: str, args: SpreadArgs, evictor: Evictor, nodes: Sequence[Node]) -> Work[None]:
    cluster, of_cycle = evictor.cluster, _Nodes(nodes, {node.name: node for node in nodes})

    def chosen(pod: Pod) -> bool:
        return args.pods.contains(pod.namespace, pod.labels) and evictor.filter(pod)

    of_namespace: dict[str, dict[tuple[tuple[str, str], ...], list[Pod]]] = {}
    for node in nodes:
        for pod in cluster.pods_on(node.name):
            yield 1
            if chosen(pod):
                alike = of_namespace.setdefault(pod.namespace, {})
                alike.setdefault(tuple(sorted(pod.labels.items())), []).append(pod)
    moved: dict[str, Pod] = {}
    for alike in of_namespace.values():
        for constraint in _constraints((pod for pods in alike.values() for pod in pods), args):
            domains = _domains(constraint, alike, of_cycle)
            yield len(nodes) + sum(map(len, domains.values()))
            if not _balanced(domains.values(), constraint.spread.max_skew):
                moving = yield from _balance(constraint, domains, of_cycle, cluster, args.node_fit)
                moved.update((pod.uid, pod) for pod in moving)
    yield from _evict(name, moved.values(), evictor, chosen)


def _evict(name: str, pods: Iterable[Pod], evictor: Evictor, chosen: Callable[[Pod], bool]) -> Work[None]:
    full: set[str] = set()  # names of the nodes whose limit is reached
    for pod in pods:
        yield 2
        if pod.node_name in full or not chosen(pod) or not (yield from evictor.pre_filter(pod)):
            continue
        outcome = evictor.evict(pod, name)
        if outcome is RequestOutcome.TOTAL_LIMIT:
            return
        if outcome is RequestOutcome.NODE_LIMIT:
            full.add(pod.node_name)


def _constraints(pods: Iterable[Pod], args: SpreadArgs) -> list[_Constraint]:
    """Return the constraints of the pods without repetitions."""
    found: dict[tuple[object, ...], _Constraint] = {}
    seen: set[int] = set()  # equal pods have equal constraints
    for pod in pods:
        if pod.signature.id in seen:
            continue
        seen.add(pod.signature.id)
        for raw in pod.pod_spec.raw.get("topologySpreadConstraints") or ():
            if raw.get("whenUnsatisfiable") in args.constraints:
                constraint = _Constraint.of(raw, pod)
                found.setdefault(constraint.key, constraint)
    return [*found.values()]


def _domains(constraint: _Constraint, alike: Alike, nodes: _Nodes) -> dict[str, list[Pod]]:
    """Return the matching pods by domain; domains without pods are included."""
    key, selector = constraint.spread.topology_key, constraint.spread.selector
    found: dict[str, list[Pod]] = {node.labels[key]: [] for node in nodes.counting(constraint)}
    for pods in alike.values():
        if not selector.matches(pods[0].labels):
            continue
        for pod in pods:
            domain = nodes.by_name[pod.node_name].labels.get(key)
            if domain is not None and not pod.deleting:
                found.setdefault(domain, []).append(pod)
    return found


def _balanced(domains: Iterable[Sequence[Pod]], max_skew: int) -> bool:
    sizes = [*map(len, domains)]
    return not sizes or max(sizes) - min(sizes) <= max_skew


def _balance(
    constraint: _Constraint,
    of_domain: dict[str, list[Pod]],
    nodes: _Nodes,
    cluster: DeschedulingCluster,
    node_fit: bool,
) -> Work[list[Pod]]:
    """Return the pods to move from the largest domains, so that the size of each domain comes close to the average."""
    average = sum(map(len, of_domain.values())) / len(of_domain)
    domains = sorted(((domain, sorted(pods, key=_rank)) for domain, pods in of_domain.items()), key=lambda d: len(d[1]))
    key = constraint.spread.topology_key
    below = {domain for domain, pods in domains if len(pods) < average}
    receiving = [node for node in nodes.counting(constraint) if node.labels[key] in below]
    moved: list[Pod] = []
    low, high = 0, len(domains) - 1
    while low < high:
        if len(domains[high][1]) <= average:
            high -= 1
        few, many = domains[low][1], domains[high][1]
        skew = len(many) - len(few)
        most = min(
            math.ceil(len(many) - average),
            math.ceil(average - len(few)),
            math.ceil((skew - constraint.spread.max_skew) / 2),
        )
        if skew <= constraint.spread.max_skew or most <= 0:
            low += 1
            continue
        fitting = set()  # UIDs
        for pod in many:
            if (yield from fits_any_other(cluster, pod, receiving)):
                fitting.add(pod.uid)
        many.sort(key=lambda pod: pod.uid in fitting)
        going = many[-most:]
        moved += [pod for pod in going if not node_fit or pod.uid in fitting]
        del many[-most:]
        few += going
    return moved


def _rank(pod: Pod) -> tuple[bool, bool, int]:
    """Return the sort key within a domain; pods are moved from the end of the sorted list.

    Pods with a node selector or node affinity come first; all other pods follow by priority.
    """
    spec = pod.pod_spec.raw
    bound = spec.get("nodeSelector") is not None or (spec.get("affinity") or {}).get("nodeAffinity") is not None
    priority = spec.get("priority")
    return not bound, priority is not None, priority or 0
