"""Strategies that evict pods by violated rules: node taints, node affinity and anti-affinity between pods.

Source: sigs.k8s.io/descheduler, pkg/framework/plugins: removepodsviolatingnodetaints,
removepodsviolatingnodeaffinity, removepodsviolatinginterpodantiaffinity.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.qos import qos_of_spec
from kschedd.api.selecting.terms import Taint
from kschedd.descheduler.cluster import PART, RequestOutcome, Work
from kschedd.descheduler.evictor import Evictor, prefers_to_stay
from kschedd.descheduler.node_fit import anti_affinity_terms, fits_any, selects, tolerates
from kschedd.descheduler.policy import AffinityStrategyArgs, AntiAffinityArgs, TaintsArgs
from kschedd.descheduler.strategies.states import evict_in_turn
from kschedd.values import in_parts

_QOS: Final = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}


def by_priority(pods: Sequence[Pod]) -> list[Pod]:
    """Sort pods in the order of eviction: by priority (none first), QoS class, and annotation against eviction."""
    return sorted(pods, key=_rank)


def _rank(pod: Pod) -> tuple[bool, int, int, bool]:
    priority = pod.pod_spec.raw.get("priority")
    qos = pod.status.get("qosClass") or qos_of_spec(pod.pod_spec.raw)
    return priority is not None, priority or 0, _QOS[qos], prefers_to_stay(pod)


def of_taints(name: str, args: TaintsArgs, evictor: Evictor, nodes: Sequence[Node]) -> Work[None]:
    effects = {"NoSchedule", *(("PreferNoSchedule",) if args.prefer_no_schedule else ())}

    def considered(taint: Taint) -> bool:
        named = {taint.key, *((f"{taint.key}={taint.value}",) if taint.value else ())}
        if taint.effect not in effects or not args.excluded.isdisjoint(named):
            return False
        return args.included is None or not args.included.isdisjoint(named)

    for node in nodes:
        taints = [*filter(considered, node.taints)]
        pods = yield from evictor.choose(evictor.cluster.pods_on(node.name), args.pods)
        violating = [pod for pod in pods if not tolerates(pod.pod_spec.tolerations, taints)]
        if not evict_in_turn(evictor, violating, name):
            return


def of_node_affinity(name: str, args: AffinityStrategyArgs, evictor: Evictor, nodes: Sequence[Node]) -> Work[None]:
    rules = [rule for rule, on in ((_violates, args.required), (_has_better_node, args.preferred)) if on]
    for rule in rules if args.required_first else reversed(rules):
        for node in nodes:
            found = []
            for pod in (yield from evictor.choose(evictor.cluster.pods_on(node.name), args.pods)):
                fit = yield from fits_any(evictor.cluster, pod, nodes)
                if fit and (yield from rule(pod, node, nodes)):
                    found.append(pod)
            if not evict_in_turn(evictor, found, name):
                break


def _violates(pod: Pod, node: Node, nodes: Sequence[Node]) -> Work[bool]:
    yield 1
    return pod.pod_spec.required_node_affinity is not None and not selects(pod, node)


def _has_better_node(pod: Pod, node: Node, nodes: Sequence[Node]) -> Work[bool]:
    present = _preference(pod, node)
    for part in in_parts(nodes, PART):
        if any(_preference(pod, each) > present for each in part):
            return True
        yield len(part)
    return False


def _preference(pod: Pod, node: Node) -> int:
    """Return the sum of the weights of the pod's preferred node affinity terms that the node matches."""
    terms = pod.pod_spec.preferred_node_affinity
    return sum(weight for weight, term in terms if term.matches(node.labels, node.name))


def of_anti_affinity(name: str, args: AntiAffinityArgs, evictor: Evictor, nodes: Sequence[Node]) -> Work[None]:
    cluster, by_name = evictor.cluster, {node.name: node for node in nodes}
    of_namespace: dict[str, list[Pod]] = {}
    on_node: dict[str, list[Pod]] = {}
    for node in nodes:
        yield 1
        for pod in cluster.pods_on(node.name):
            if args.pods.contains(pod.namespace, pod.labels):
                of_namespace.setdefault(pod.namespace, []).append(pod)
                on_node.setdefault(node.name, []).append(pod)
    for node in nodes:
        for pod in by_priority(on_node.get(node.name, ())):
            conflicts = yield from _conflicts(pod, of_namespace, by_name)
            if not conflicts or not evictor.filter(pod) or not (yield from evictor.pre_filter(pod)):
                continue
            outcome = evictor.evict(pod, name)
            if outcome is RequestOutcome.TOTAL_LIMIT:
                return
            if outcome is RequestOutcome.NODE_LIMIT:
                break
            if outcome is RequestOutcome.DONE:
                of_namespace[pod.namespace].remove(pod)


def _conflicts(pod: Pod, of_namespace: Mapping[str, Sequence[Pod]], nodes: Mapping[str, Node]) -> Work[bool]:
    """Return whether a required anti-affinity term of the pod matches another pod in the same domain."""
    own = nodes[pod.node_name]
    for namespaces, selector, key in anti_affinity_terms(pod):
        for part in in_parts((each for name in namespaces for each in of_namespace.get(name, ())), PART):
            if any(
                each.name != pod.name
                and selector.matches(each.labels)
                and _same_domain(own, nodes[each.node_name], key)
                for each in part
            ):
                return True
            yield len(part)
    return False


def _same_domain(one: Node, other: Node, key: str) -> bool:
    if one.name == other.name:
        return True
    return key in one.labels and one.labels[key] == other.labels.get(key)
