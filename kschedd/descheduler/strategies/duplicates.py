"""RemoveDuplicates, which leaves on each node at most an equal share of an owner's pods.

Source: sigs.k8s.io/descheduler, pkg/framework/plugins/removeduplicates.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.descheduler.cluster import RequestOutcome, Work, owners
from kschedd.descheduler.evictor import Evictor
from kschedd.descheduler.node_fit import selects, tolerates_hard_taints
from kschedd.descheduler.policy import DuplicatesArgs

Owner = tuple[str, str, str, tuple[str, ...]]
"""Namespace, kind and name of an owner, and the images of the pod's containers."""


def duplicates(name: str, args: DuplicatesArgs, evictor: Evictor, nodes: Sequence[Node]) -> Work[None]:
    counts: Counter[Owner] = Counter()
    more: dict[Owner, dict[str, list[Pod]]] = {}  # pods by owner and node, without the first pod on each node
    for node in nodes:
        seen: set[tuple[Owner, ...]] = set()
        for pod in (yield from evictor.choose(evictor.cluster.pods_on(node.name), args.pods)):
            kinds = {owner.get("kind") for owner in owners(pod)}
            if not kinds or not args.exclude_kinds.isdisjoint(kinds):
                continue
            keys = _owners(pod)
            counts.update(keys)
            if (same := tuple(sorted(keys))) in seen:
                for owner in keys:
                    more.setdefault(owner, {}).setdefault(node.name, []).append(pod)
            seen.add(same)
    for owner, on_nodes in more.items():
        targets = yield from _targets((pod for pods in on_nodes.values() for pod in pods), nodes)
        if targets < 2:
            continue
        most = -(-counts[owner] // targets)
        for pods in on_nodes.values():
            for pod in pods[most - 1 :]:
                outcome = evictor.evict(pod, name)
                if outcome is RequestOutcome.TOTAL_LIMIT:
                    return
                if outcome is RequestOutcome.NODE_LIMIT:
                    break


def _owners(pod: Pod) -> list[Owner]:
    images = tuple(sorted(str(each.get("image") or "") for each in pod.pod_spec.raw.get("containers") or ()))
    return [(pod.namespace, str(each.get("kind")), str(each.get("name")), images) for each in owners(pod)]


def _targets(pods: Iterable[Pod], nodes: Sequence[Node]) -> Work[int]:
    """Return the number of nodes on which any of the pods can run; pods that can run on only one node are ignored."""
    found: set[str] = set()
    for pod in {pod.pod_spec: pod for pod in pods}.values():  # pods with equal specs can run on the same nodes
        own = [node.name for node in nodes if tolerates_hard_taints(pod, node) and selects(pod, node)]
        yield len(nodes)
        if len(own) > 1:
            found.update(own)
    return len(found)
