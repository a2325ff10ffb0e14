"""The descheduler's own check whether a pod fits on a node; it has fewer rules than the scheduler.

Source: sigs.k8s.io/descheduler, pkg/descheduler/node/node.go (NodeFit), pkg/utils/predicates.go.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.requirements import SelectorError
from kschedd.api.selecting.selectors import LabelSelector, parse_label_selector
from kschedd.api.selecting.terms import Taint, Toleration
from kschedd.descheduler.cluster import PART, DeschedulingCluster, Work
from kschedd.values import in_parts

HARD_EFFECTS: Final = frozenset(("NoSchedule", "NoExecute"))


def tolerates(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> bool:
    """Return whether the tolerations tolerate each taint."""
    return all(any(toleration.tolerates(taint) for toleration in tolerations) for taint in taints)


def tolerates_hard_taints(pod: Pod, node: Node) -> bool:
    return tolerates(pod.pod_spec.tolerations, (taint for taint in node.taints if taint.effect in HARD_EFFECTS))


def selects(pod: Pod, node: Node) -> bool:
    """Return whether the node matches the pod's nodeSelector and required node affinity."""
    spec = pod.pod_spec
    if any(node.labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.required_node_affinity
    try:
        return affinity is None or affinity.matches(node.labels, node.name)
    except SelectorError:
        return False


def anti_affinity_terms(pod: Pod) -> Iterator[tuple[frozenset[str], LabelSelector, str]]:
    """Yield the namespaces, the selector and the topology key of each required anti-affinity term.

    Namespace selectors are ignored.
    """
    affinity: Any = pod.pod_spec.raw.get("affinity") or {}
    for term in (affinity.get("podAntiAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ():
        namespaces = frozenset(term.get("namespaces") or (pod.namespace,))
        yield namespaces, parse_label_selector(term.get("labelSelector")), str(term.get("topologyKey"))


def fits(cluster: DeschedulingCluster, pod: Pod, node: Node) -> bool:
    if node.unschedulable or not selects(pod, node) or not tolerates_hard_taints(pod, node):
        return False
    for namespaces, selector, key in anti_affinity_terms(pod):
        if key in node.labels and any(
            each.name != pod.name and each.namespace in namespaces and selector.matches(each.labels)
            for each in cluster.pods_on(node.name)
        ):
            return False
    return pod.node_name == node.name or _has_room(cluster, pod, node)


def fits_any_other(cluster: DeschedulingCluster, pod: Pod, nodes: Iterable[Node]) -> Work[bool]:
    others = (node for node in nodes if node.name != pod.node_name)
    return (yield from fits_any(cluster, pod, others))


def fits_any(cluster: DeschedulingCluster, pod: Pod, nodes: Iterable[Node]) -> Work[bool]:
    for part in in_parts(nodes, PART):
        if any(fits(cluster, pod, node) for node in part):
            return True
        yield len(part)
    return False


def _has_room(cluster: DeschedulingCluster, pod: Pod, node: Node) -> bool:
    used = cluster.used_on(node.name)
    for resource, amount in pod.pod_spec.requests.items():
        if amount > node.allocatable.get(resource, 0) - used.get(resource, 0):
            return False
    return node.allocatable.get("pods", 0) > cluster.pod_count(node.name)
