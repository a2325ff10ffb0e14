"""Requirements of pods for other pods: topology spread, pod affinity and pod anti-affinity, as Karpenter counts them.

A group counts, for one topology key, the pods that a term selects in each domain. Domains are the values that pools and
instance types allow, and those of existing nodes. A pod whose domain is still open counts in no domain; a pod with
anti-affinity blocks all domains in which it may start.

Source: sigs.k8s.io/karpenter, pkg/controllers/provisioning/scheduling (topology.go, topologygroup.go,
topologynodefilter.go).
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

import attrs

from kschedd.api.nodes import HOSTNAME_LABEL
from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import PodAffinityTerm, SpreadConstraint, Taint, Toleration
from kschedd.pools.karpenter.requirements import NodeRequirement, Requirements, combined, compatible

_NO_LIMIT: Final = 2**31 - 1


class TopologyKind(Enum):
    SPREAD = "topology spread"
    AFFINITY = "pod affinity"
    ANTI_AFFINITY = "pod anti-affinity"


@attrs.frozen(eq=False)
class CountedNode:
    """A node with its pods, as far as topology counts them."""

    labels: Mapping[str, str]
    taints: Sequence[Taint]
    pods: Sequence[Pod]


@attrs.frozen
class NodeInclusion:
    """The nodes that a spread constraint counts: `terms` are alternatives, empty: all nodes."""

    terms: tuple[tuple[NodeRequirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] | None = None  # None: taints do not matter

    def contains(self, requirements: Requirements, taints: Iterable[Taint]) -> bool:
        if self.terms and not any(compatible(requirements, combined(term)) for term in self.terms):
            return False
        return self.tolerates(taints)

    def tolerates(self, taints: Iterable[Taint]) -> bool:
        tolerations = self.tolerations
        return tolerations is None or all(any(each.tolerates(taint) for each in tolerations) for taint in taints)


@attrs.frozen
class TopologyTerm:
    """One requirement for other pods. Pods of equal terms share a group."""

    kind: TopologyKind
    key: str
    term: PodAffinityTerm
    max_skew: int = _NO_LIMIT
    min_domains: int = 1
    nodes: NodeInclusion = NodeInclusion()

    @classmethod
    def of_spread(cls, pod: Pod, each: SpreadConstraint, terms: Sequence[Requirements]) -> "TopologyTerm":
        """Return the term of a spread constraint. `terms` are the alternatives of the pod's node affinity."""
        inclusion = NodeInclusion(
            tuple(tuple(term.values()) for term in terms) if each.honor_affinity else (),
            tuple(pod.pod_spec.tolerations) if each.honor_taints else None,
        )
        own = PodAffinityTerm(each.selector, each.topology_key, frozenset((pod.namespace,)), None)
        return cls(TopologyKind.SPREAD, each.topology_key, own, each.max_skew, each.min_domains, inclusion)

    @classmethod
    def of_affinity(cls, kind: TopologyKind, term: PodAffinityTerm) -> "TopologyTerm":
        return cls(kind, term.topology_key, term)


@attrs.define(eq=False)
class DomainCounts:
    """The number of selected pods in each domain of a term."""

    term: TopologyTerm
    namespaces: Mapping[str, Mapping[str, str]]  # labels by name
    counts: dict[str, int]

    def selects(self, pod: Pod) -> bool:
        return self.term.term.matches(pod.namespace, pod.labels, self.namespaces.get(pod.namespace, {}))

    def record(self, domains: Iterable[str]) -> None:
        for domain in domains:
            self.counts[domain] = self.counts.get(domain, 0) + 1

    def allowed(self, pod: Pod, of_pod: NodeRequirement, of_node: NodeRequirement) -> frozenset[str]:
        """Return the domains in which the pod may start; spread and affinity select one of several."""
        if self.term.kind is TopologyKind.SPREAD:
            return self._spread(pod, of_pod, of_node)
        if self.term.kind is TopologyKind.AFFINITY:
            return self._near(pod, of_pod, of_node)
        return frozenset(each for each in self._known(of_node) if not self._count(each) and of_pod.allows(each))

    def _known(self, of_node: NodeRequirement) -> list[str]:
        """Return the domains that the node may have; a new node's hostname is a domain in any case."""
        if self.term.key == HOSTNAME_LABEL and not of_node.complement:
            return sorted(of_node.values)
        return sorted(domain for domain in self.counts if of_node.allows(domain))

    def _count(self, domain: str) -> int:
        return self.counts.get(domain, 0)

    def _spread(self, pod: Pod, of_pod: NodeRequirement, of_node: NodeRequirement) -> frozenset[str]:
        least, own = self._least(of_pod), int(self.selects(pod))
        valid = [each for each in self._known(of_node) if self._count(each) + own - least <= self.term.max_skew]
        return frozenset((min(valid, key=self._count),)) if valid else frozenset()

    def _least(self, of_pod: NodeRequirement) -> int:
        if self.term.key == HOSTNAME_LABEL:
            return 0
        counts = [count for domain, count in self.counts.items() if of_pod.allows(domain)]
        return 0 if len(counts) < self.term.min_domains else min(counts, default=0)

    def _near(self, pod: Pod, of_pod: NodeRequirement, of_node: NodeRequirement) -> frozenset[str]:
        known = [each for each in self._known(of_node) if of_pod.allows(each)]
        if near := frozenset(each for each in known if self._count(each)):
            return near
        if self.selects(pod) and not any(count and of_pod.allows(each) for each, count in self.counts.items()):
            others = sorted(each for each in self.counts if of_pod.allows(each))
            return frozenset((known or others)[:1])
        return frozenset()


@attrs.define(eq=False)
class RoundTopology:
    """The groups of all pods of a round, and those of existing pods with anti-affinity.

    `domains` maps each topology key to its domains, each with the taints of the pools that offer it.
    """

    nodes: Sequence[CountedNode]
    namespaces: Mapping[str, Mapping[str, str]]
    domains: Mapping[str, Mapping[str, Sequence[Sequence[Taint]]]]
    _groups: dict[TopologyTerm, DomainCounts] = attrs.field(factory=dict, init=False)
    _inverse: dict[TopologyTerm, DomainCounts] = attrs.field(factory=dict, init=False)
    _hostnames: list[str] = attrs.field(factory=list, init=False)  # of planned nodes

    def __attrs_post_init__(self) -> None:
        for node in self.nodes:
            for pod in node.pods:
                for term in anti_affinity_of(pod):
                    group = self._inverse_group(term)
                    if term.key in node.labels:
                        group.record((node.labels[term.key],))

    def prepare(self, pod: Pod, terms: Iterable[TopologyTerm]) -> None:
        """Create the groups of a pod of the round."""
        for term in terms:
            self._group(term)
        for term in anti_affinity_of(pod):
            self._inverse_group(term)

    def register(self, hostname: str) -> None:
        """Add the hostname of a planned node to the domains."""
        self._hostnames.append(hostname)
        for group in (*self._groups.values(), *self._inverse.values()):
            if group.term.key == HOSTNAME_LABEL:
                group.counts.setdefault(hostname, 0)

    def narrowed(
        self, pod: Pod, terms: Iterable[TopologyTerm], strict: Requirements, of_node: Requirements
    ) -> Requirements | None:
        """Return the node's requirements within the domains that the pod's terms allow; None if there are none.

        `strict` are the pod's own requirements without preferences.
        """
        found = [self._group(term) for term in terms]
        found += [group for group in self._inverse.values() if group.selects(pod)]
        added = []
        for group in found:
            key = group.term.key
            anything = NodeRequirement(key, frozenset(), True)
            domains = group.allowed(pod, strict.get(key, anything), of_node.get(key, anything))
            if not domains:
                return None
            added.append(NodeRequirement(key, domains))
        narrowed = combined([*of_node.values(), *added])
        return narrowed if all(narrowed[each.key].values for each in added) else None

    def record(self, pod: Pod, requirements: Requirements, taints: Iterable[Taint]) -> None:
        """Count a pod that was planned onto a node with these requirements."""
        taints = list(taints)
        for term, group in self._groups.items():
            if group.selects(pod) and term.nodes.contains(requirements, taints):
                values = requirements[term.key].values if term.key in requirements else frozenset()
                if term.kind is TopologyKind.ANTI_AFFINITY or len(values) == 1:
                    group.record(values)
        for term in anti_affinity_of(pod):
            if term.key in requirements:
                self._inverse_group(term).record(requirements[term.key].values)

    def _inverse_group(self, term: TopologyTerm) -> DomainCounts:
        if term not in self._inverse:
            self._inverse[term] = DomainCounts(term, self.namespaces, self._empty(term))
            for node in self.nodes:
                if term.key in node.labels:
                    self._inverse[term].counts.setdefault(node.labels[term.key], 0)
        return self._inverse[term]

    def _group(self, term: TopologyTerm) -> DomainCounts:
        if term in self._groups:
            return self._groups[term]
        group = self._groups[term] = DomainCounts(term, self.namespaces, self._empty(term))
        for node in self.nodes:
            own = {key: NodeRequirement(key, frozenset((value,))) for key, value in node.labels.items()}
            if term.key in node.labels and term.nodes.contains(own, node.taints):
                domain = node.labels[term.key]
                group.counts.setdefault(domain, 0)
                counted = [pod for pod in node.pods if not (pod.finished or pod.deleting) and group.selects(pod)]
                group.record([domain] * len(counted))
        return group

    def _empty(self, term: TopologyTerm) -> dict[str, int]:
        offered = self.domains.get(term.key, {})
        found = {name: 0 for name, pools in offered.items() if any(term.nodes.tolerates(taints) for taints in pools)}
        if term.key == HOSTNAME_LABEL:
            found |= dict.fromkeys(self._hostnames, 0)
        return found


def anti_affinity_of(pod: Pod) -> list[TopologyTerm]:
    """Return the terms of the pod's required anti-affinity."""
    terms = pod.signature.required_anti_affinity
    return [TopologyTerm.of_affinity(TopologyKind.ANTI_AFFINITY, term) for term in terms]
