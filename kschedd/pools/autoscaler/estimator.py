"""Estimator: the number of nodes of one group that a set of pods needs, by first-fit decreasing bin packing.

Source: sigs.k8s.io/cluster-autoscaler, pkg/estimator/binpacking_estimator.go and decreasing_pod_orderer.go. The limit
of 10 s for each group is not applied, so that a result does not depend on the speed of the machine.
"""

from collections.abc import Generator, Sequence
from typing import Final

import attrs

from kschedd.api.nodes import HOSTNAME_LABEL, Node
from kschedd.api.pods import Pod
from kschedd.pools.trials import PlacementTrials, place_on_any, placing_on_any

#: largest number of nodes that one estimate may add
MOST_NODES: Final = 1000
_SPREAD_REASON: Final = "node(s) didn't match pod topology spread constraints"


@attrs.frozen(eq=False)
class NodeEstimate:
    """The number of nodes that receive pods, and the pods that fit."""

    node_count: int
    pods: Sequence[Pod]


def estimating(
    trials: PlacementTrials, groups: Sequence[Sequence[Pod]], template: Node, limit: int | None = MOST_NODES
) -> Generator[None, None, NodeEstimate]:
    """Return how many nodes like the template the groups of equal pods need, with a pause before each pod.

    `limit` is the largest number of nodes to add; None: no limit. `trials` is unchanged afterwards.
    """
    mark = trials.mark()
    try:
        packing = _Packing(trials, template, limit)
        for pods in sorted(groups, key=lambda group: -_size(group[0], template)):
            yield from packing.pack(pods)
        return NodeEstimate(len(packing.used), packing.placed)
    finally:
        trials.revert(mark)


def _size(pod: Pod, template: Node) -> float:
    """Return the sum of the shares of cpu and memory that the pod takes of a node."""
    shares = 0.0
    for resource in ("cpu", "memory"):
        there = template.allocatable.get(resource, 0)
        if there > 0:
            shares += pod.requests.get(resource, 0) / there
    return shares


@attrs.define(eq=False)
class _Packing:
    trials: PlacementTrials
    template: Node
    limit: int | None
    placed: list[Pod] = attrs.field(factory=list, init=False)
    # Names of nodes with a pod of the estimate. As upstream, this may include nodes that exist already.
    used: set[str] = attrs.field(factory=set, init=False)
    added: list[str] = attrs.field(factory=list, init=False)
    full: bool = attrs.field(default=False, init=False)  # true once a node was refused because of the limit

    def pack(self, pods: Sequence[Pod]) -> Generator[None, None, None]:
        """Place the pods on the added nodes, then on further nodes; stop at the first pod that does not fit."""
        new = {*self.added}
        for place, pod in enumerate(pods):
            name = yield from placing_on_any(self.trials, pod, lambda name: name in new)
            if not self._placed_on(pod, name):
                if not self.full:
                    yield from self._pack_on_new_nodes(pods[place:])
                return

    def _placed_on(self, pod: Pod, name: str | None) -> bool:
        if name is None:
            return False
        self.used.add(name)
        self.placed.append(pod)
        return True

    def _pack_on_new_nodes(self, pods: Sequence[Pod]) -> Generator[None, None, None]:
        for pod in pods:
            yield
            if self.added and self._fits_beside(pod, self.added[-1]):
                continue
            if self.added and self.added[-1] not in self.used:
                return  # an empty node rejects the pod, so another empty node would also reject it
            if self.limit is not None and len(self.added) >= self.limit:
                self.full = True
                return
            name = self._add_node()
            if self.trials.why_not(pod, name):
                return
            self.trials.place(pod, name)
            self._placed_on(pod, name)

    def _fits_beside(self, pod: Pod, last: str) -> bool:
        """Place the pod on the node added last.

        If only the spread over hostnames prevents this, place the pod on any other node of the cluster.
        """
        why = self.trials.why_not(pod, last)
        if not why:
            self.trials.place(pod, last)
            return self._placed_on(pod, last)
        spread = pod.spec.get("topologySpreadConstraints") or ()
        if _SPREAD_REASON in why and any(each.get("topologyKey") == HOSTNAME_LABEL for each in spread):
            return self._placed_on(pod, place_on_any(self.trials, pod, lambda name: name != last))
        return False

    def _add_node(self) -> str:
        name = f"{self.template.name}-estimated-{len(self.added)}"
        self.trials.put_node(node_like(self.template, name))
        self.added.append(name)
        return name


def node_like(template: Node, name: str) -> Node:
    """Return a node with the template's properties and this name."""
    meta = template.metadata
    labels = {**template.labels, HOSTNAME_LABEL: name}
    return Node.from_raw({**template.raw, "metadata": {**meta, "name": name, "uid": name, "labels": labels}})
