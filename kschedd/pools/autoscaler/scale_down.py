"""Scale-down: the removal of each candidate is simulated, and the time since which nodes are unneeded is recorded.

A node whose removal succeeds in the simulation disappears from it, with its pods placed on other nodes. A node that
received such pods is therefore needed.

Source: sigs.k8s.io/cluster-autoscaler, pkg/core/scaledown/planner/planner.go, pkg/core/scaledown/unneeded/nodes.go and
pkg/simulator/cluster.go. The time limit of 30 s for the simulation is not applied. Times are seconds since the epoch.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.pools.autoscaler.draining import BlockingPod, DrainRules
from kschedd.pools.autoscaler.groups import (
    DELETION_CANDIDATE,
    TO_BE_DELETED,
    AutoscaledGroup,
    is_scale_down_disabled,
    node_is_ready,
    taint_time,
)
from kschedd.pools.autoscaler.pods import is_recreated
from kschedd.pools.autoscaler.unremovable import KeptReason
from kschedd.pools.trials import PlacementTrials, placing_on_any
from kschedd.values import run_steps

_RECREATING: Final = ("StatefulSet", "Job", "ReplicaSet", "ReplicationController")


@attrs.frozen(eq=False)
class RemovableNode:
    """A node that can be removed. `risky`: the disruption budgets do not allow the evictions at the same time."""

    node: Node
    move: Sequence[Pod]
    waiting: Sequence[Pod] = ()
    risky: bool = False


@attrs.frozen(eq=False)
class UnremovableNode:
    name: str
    reason: KeptReason
    blocking: BlockingPod | None = None


@attrs.frozen(eq=False)
class RemovalPlan:
    removable: Sequence[RemovableNode]
    unremovable: Sequence[UnremovableNode]
    skipped: Sequence[str]  # candidates beyond the limit, which were not simulated


@attrs.frozen
class ReplicaCount:
    """Desired and existing number of pods of a controller."""

    desired: int
    current: int


def simulate_removals(
    trials: PlacementTrials, candidates: Sequence[str], rules: DrainRules, limit: int | None = None
) -> RemovalPlan:
    return run_steps(simulating_removals(trials, candidates, rules, limit))


def simulating_removals(
    trials: PlacementTrials, candidates: Sequence[str], rules: DrainRules, limit: int | None = None
) -> Generator[None, None, RemovalPlan]:
    """Return which candidates can be removed, one after the other in this order, with pauses.

    `trials` contains the placements of the simulation afterwards, and `rules.budgets` its evictions. `limit` is the
    largest number of removable nodes to find.
    """
    destinations = {node.name for node in trials.nodes() if taint_time(node, TO_BE_DELETED) is None}
    removable: list[RemovableNode] = []
    unremovable: list[UnremovableNode] = []
    for place, name in enumerate(candidates):
        if limit is not None and len(removable) >= limit:
            return RemovalPlan(removable, unremovable, candidates[place:])
        found = yield from _simulating_removal(trials, name, destinations, rules)
        if isinstance(found, UnremovableNode):
            unremovable.append(found)
            continue
        removable.append(attrs.evolve(found, risky=not rules.budgets.allow_together(found.move)))
        rules.budgets.remove(found.move)
        destinations.discard(name)
    return RemovalPlan(removable, unremovable, ())


def _simulating_removal(
    trials: PlacementTrials, name: str, destinations: set[str], rules: DrainRules
) -> Generator[None, None, RemovableNode | UnremovableNode]:
    """Remove a node and place its pods on the destinations; if this fails, `trials` is unchanged."""
    node = trials.node(name)
    if node is None:
        return UnremovableNode(name, KeptReason.UNEXPECTED_ERROR)
    drained = rules.drained(trials.pods_on(name))
    if drained.blocking is not None:
        return UnremovableNode(name, KeptReason.BLOCKED_BY_POD, drained.blocking)
    mark = trials.mark()
    for pod in trials.pods_on(name):
        trials.remove_pod(pod)
    # The node stays, tainted, while its pods are placed: it still counts as a domain for topology spread.
    trials.put_node(_tainted(node, rules.now_s))
    if not (yield from _placing_all(trials, drained.move, lambda other: other != name and other in destinations)):
        trials.revert(mark)
        return UnremovableNode(name, KeptReason.NO_PLACE_TO_MOVE_PODS)
    trials.remove_node(name)
    return RemovableNode(node, drained.move, drained.waiting)


def _placing_all(
    trials: PlacementTrials, pods: Iterable[Pod], acceptable: Callable[[str], bool]
) -> Generator[None, None, bool]:
    """Place the pods by descending priority; return False at the first pod that does not fit."""
    for pod in sorted(pods, key=lambda pod: -pod.priority):
        if (yield from placing_on_any(trials, attrs.evolve(pod, node_name=""), acceptable)) is None:
            return False
    return True


def _tainted(node: Node, now_s: float) -> Node:
    spec = node.spec
    taint = {"key": TO_BE_DELETED, "value": str(int(now_s)), "effect": "NoSchedule"}
    return Node.from_raw({**node.raw, "spec": {**spec, "taints": [*(spec.get("taints") or ()), taint]}})


def place_evicted(trials: PlacementTrials, evicted: Iterable[Pod], replicas: Mapping[str, ReplicaCount]) -> bool:
    """Place recently evicted pods that their controllers have not replaced yet; return whether all of them fit.

    `replicas` is keyed by the UID of each known controller. Pods of unknown controllers count as not replaced.
    """
    missing: list[Pod] = []
    counted = Counter[str]()
    for pod in evicted:
        if not is_recreated(pod):
            continue
        references = pod.metadata.get("ownerReferences") or ()
        uid = next((str(each.get("uid")) for each in references if each.get("kind") in _RECREATING), "")
        count = replicas.get(uid)
        if count is not None:
            if counted[uid] >= count.desired - count.current:
                continue
            counted[uid] += 1
        missing.append(pod)
    return run_steps(_placing_all(trials, missing, lambda name: True))


# -- unneeded nodes -------------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class UnneededNode:
    """A removable node with the time since which it is unneeded. `threshold_s`: how long it must stay unneeded."""

    removable: RemovableNode
    since_s: float
    threshold_s: float


@attrs.frozen
class UnneededTimes:
    """The time after which an unneeded node is removed, for ready nodes and for others."""

    ready_s: float = 600.0
    unready_s: float = 1200.0

    def of(self, node: Node) -> float:
        return self.ready_s if node_is_ready(node) else self.unready_s


def still_unneeded(
    before: Mapping[str, UnneededNode], removable: Iterable[RemovableNode], times: UnneededTimes, now_s: float
) -> dict[str, UnneededNode]:
    """Return the unneeded nodes after another loop: those that were unneeded before keep their time."""
    found = {}
    for each in removable:
        name = each.node.name
        since_s = before[name].since_s if name in before else now_s
        found[name] = UnneededNode(each, since_s, times.of(each.node))
    return found


def unneeded_by_taints(
    nodes: Iterable[Node], times: UnneededTimes, ttl_s: float, now_s: float
) -> dict[str, UnneededNode]:
    """Return the unneeded nodes that the taints of an earlier process record, unless a taint is older than `ttl_s`."""
    found = {}
    for node in nodes:
        since_s = taint_time(node, DELETION_CANDIDATE)
        if since_s is not None and since_s + ttl_s >= now_s:
            found[node.name] = UnneededNode(RemovableNode(node, ()), since_s, times.of(node))
    return found


@attrs.frozen(eq=False)
class RemovableNow:
    empty: Sequence[RemovableNode]
    drain: Sequence[RemovableNode]
    kept: Mapping[str, KeptReason]


@attrs.define(eq=False)
class GroupSizes:
    """The sizes of groups during a scale-down, and the minima of the cluster.

    `groups` maps each node to its group. `deleting` is the number of deletions in progress by group. `spare` is the
    amount of each resource (nodes, cores, memory) that may be removed.
    """

    groups: Mapping[str, AutoscaledGroup]
    deleting: Mapping[str, int]
    spare: dict[str, int]
    sizes: dict[str, int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.sizes = {group.name: group.target for group in self.groups.values()}

    def why_kept(self, node: Node, amounts: Mapping[str, int]) -> KeptReason | None:
        """Return why the node may not be removed. A node that may be removed is subtracted."""
        group = self.groups.get(node.name)
        if group is None:
            return KeptReason.NOT_AUTOSCALED
        if self.sizes[group.name] - self.deleting.get(group.name, 0) <= group.minimum:
            return KeptReason.MIN_SIZE_REACHED
        limited = {name: number for name, number in amounts.items() if name in self.spare}
        if any(number > self.spare[name] for name, number in limited.items()):
            return KeptReason.RESOURCE_MINIMUM_EXCEEDED
        for name, number in limited.items():
            self.spare[name] -= number
        self.sizes[group.name] -= 1
        return None


def removable_at(
    unneeded: Iterable[UnneededNode], sizes: GroupSizes, now_s: float, amounts: Callable[[Node], Mapping[str, int]]
) -> RemovableNow:
    """Return the nodes that have been unneeded long enough, empty nodes first, within the sizes of their groups."""
    kept: dict[str, KeptReason] = {}
    chosen: tuple[list[RemovableNode], list[RemovableNode]] = ([], [])
    for drains in (False, True):
        for each in unneeded:
            if bool(each.removable.move) is not drains:
                continue
            node = each.removable.node
            why = _why_not_yet(each, now_s) or sizes.why_kept(node, amounts(node))
            if why is None:
                chosen[drains].append(each.removable)
            else:
                kept[node.name] = why
    empty, drain = chosen
    return RemovableNow(empty, sorted(drain, key=lambda each: each.risky), kept)


def _why_not_yet(unneeded: UnneededNode, now_s: float) -> KeptReason | None:
    node = unneeded.removable.node
    if is_scale_down_disabled(node):
        return KeptReason.DISABLED
    if unneeded.threshold_s > 0 and unneeded.since_s + unneeded.threshold_s >= now_s:
        return KeptReason.NOT_UNNEEDED_LONG_ENOUGH if node_is_ready(node) else KeptReason.NOT_UNREADY_LONG_ENOUGH
    return None
