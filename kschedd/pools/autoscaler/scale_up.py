"""Scale-up: which group gets how many nodes for a set of unschedulable pods.

One group, or one set of similar groups, is scaled up at a time. The pods of the chosen option triggered the scale-up;
pods that only other groups can take wait for the next loop; the rest remains unschedulable.

Source: sigs.k8s.io/cluster-autoscaler, pkg/core/scaleup/orchestrator/orchestrator.go, pkg/processors/nodegroupset,
pkg/core/scaleup/equivalence/groups.go and pkg/resourcequotas. Units: whole cores, memory in bytes.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.nodes import BETA_REGION_LABEL, BETA_ZONE_LABEL, HOSTNAME_LABEL, REGION_LABEL, ZONE_LABEL, Node
from kschedd.api.pods import Pod
from kschedd.api.quantity import value
from kschedd.api.resources import amounts
from kschedd.pools.autoscaler.estimator import MOST_NODES, estimating, node_like
from kschedd.pools.autoscaler.expanders import ExpansionOption
from kschedd.pools.autoscaler.groups import AutoscaledGroup
from kschedd.pools.autoscaler.pods import is_daemon
from kschedd.pools.trials import PlacementTrials

_MOST_GROUPS: Final = 10  # groups of equal pods for each controller
_MEMORY_TOLERANCE: Final = 0.015
_ALLOCATABLE_TOLERANCE: Final = 0.05
_IGNORED_LABELS: Final = frozenset(
    (
        *(HOSTNAME_LABEL, ZONE_LABEL, REGION_LABEL, BETA_ZONE_LABEL, BETA_REGION_LABEL),
        *("beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup"),
    )
)

Choice = Callable[[Sequence[ExpansionOption]], ExpansionOption | None]


@attrs.frozen
class ScaleUpLimits:
    """Limits of a scale-up; 0: no limit. `bounded`: estimates stop at the capacity of the groups and the cluster."""

    nodes: int = 0
    cores: int = 0
    memory: int = 0
    balance_similar: bool = False
    all_or_nothing: bool = False
    bounded: bool = True


@attrs.frozen(eq=False)
class ScaleUpPlan:
    """The result of a scale-up. `sizes` maps each group that grows to its new size; empty: no scale-up."""

    chosen: ExpansionOption | None
    sizes: Mapping[str, int]
    options: Sequence[ExpansionOption]
    triggered: Sequence[Pod]
    awaiting: Sequence[Pod]
    unschedulable: Sequence[Pod]


@attrs.define(eq=False)
class _Headroom:
    """The remaining amount of each limited resource."""

    left: dict[str, int]

    def allowed(self, node: Node, count: int) -> int:
        return min((self.left[name] // each for name, each in self._each(node)), default=count)

    def fits(self, node: Node, count: int) -> int:
        return max(0, min(count, self.allowed(node, count)))

    def consume(self, node: Node, count: int) -> None:
        for name, each in self._each(node):
            self.left[name] = max(0, self.left[name] - each * count)

    def _each(self, node: Node) -> list[tuple[str, int]]:
        return [(name, each) for name, each in node_amounts(node).items() if name in self.left and each > 0]


def node_amounts(node: Node) -> dict[str, int]:
    """Return the resources that limits of the cluster count: whole cores and bytes of memory."""
    stated = node.status.get("capacity") or {}
    return {"cpu": value(stated.get("cpu", 0)), "memory": value(stated.get("memory", 0))}


def headroom(limits: ScaleUpLimits, nodes: Iterable[Node]) -> dict[str, int]:
    """Return the amount of each limited resource that the nodes leave."""
    left = {name: limit for name, limit in (("cpu", limits.cores), ("memory", limits.memory)) if limit}
    for node in nodes:
        for name, number in node_amounts(node).items():
            if name in left:
                left[name] -= number
    return {name: max(0, number) for name, number in left.items()}


def equal_pods(pods: Iterable[Pod]) -> list[list[Pod]]:
    """Return the pods in groups with the same controller, labels and spec; other pods form groups of their own."""
    groups: list[list[Pod]] = []
    by_controller: dict[str, list[list[Pod]]] = {}
    for pod in pods:
        owner = pod.owner
        if owner is None or is_daemon(pod):
            groups.append([pod])
            continue
        own = by_controller.setdefault(owner.uid, [])
        same = next((group for group in own if group[0].signature is pod.signature), None)
        if same is not None:
            same.append(pod)
            continue
        groups.append([pod])
        if len(own) < _MOST_GROUPS:
            own.append(groups[-1])
    return groups


def planning_scale_up(
    trials: PlacementTrials,
    groups: Sequence[AutoscaledGroup],
    pending: Sequence[Pod],
    limits: ScaleUpLimits,
    choose: Choice,
) -> Generator[None, None, ScaleUpPlan]:
    """Return the scale-up for the pending pods, with a pause before each pod that is tried.

    `groups` are the groups that may grow: they are healthy and not in backoff.
    `choose` selects one of the options, as a chain of expanders and a random choice do.
    `trials` is unchanged afterwards.
    """
    nodes = trials.nodes()
    quota = _Headroom(headroom(limits, nodes))
    valid = [each for each in groups if each.target < each.maximum and quota.fits(each.template, 1)]
    equal = equal_pods(pending)
    takes: dict[str, list[list[Pod]]] = {}
    for group in valid:
        takes[group.name] = yield from _taken(trials, group.template, equal)
    options = []
    for group in valid:
        similar = _similar(group, valid, takes) if limits.balance_similar else []
        most = _estimation_limit(limits, [group, *similar], len(nodes))
        found = None
        if most != 0 and takes[group.name]:
            found = yield from estimating(trials, takes[group.name], group.template, most)
        complete = found is not None and (not limits.all_or_nothing or len(found.pods) == len(pending))
        if found is not None and found.node_count and found.pods and complete:
            options.append(ExpansionOption(group, found.node_count, found.pods))
    chosen = choose(options) if options else None
    helped = {id(pods) for taken in takes.values() for pods in taken}
    left = [pod for pods in equal if id(pods) not in helped for pod in pods]
    sizes = {} if chosen is None else _sizes(chosen, valid, takes, limits, quota, len(nodes))
    if chosen is None or not sizes:
        aborted = limits.all_or_nothing or (options and chosen is None)
        return ScaleUpPlan(None, {}, options, (), (), list(pending) if aborted else left)
    mine = {id(pods) for pods in takes[chosen.group.name]}
    awaiting = [pod for pods in equal if id(pods) in helped - mine for pod in pods]
    return ScaleUpPlan(chosen, sizes, options, chosen.pods, awaiting, left)


def _taken(
    trials: PlacementTrials, template: Node, equal: Iterable[list[Pod]]
) -> Generator[None, None, list[list[Pod]]]:
    """Return the groups of equal pods whose pods fit on an empty node that equals the template."""
    mark = trials.mark()
    name = f"{template.name}-template"
    trials.put_node(node_like(template, name))
    taken = []
    for pods in equal:
        yield
        if not trials.why_not(pods[0], name):
            taken.append(pods)
    trials.revert(mark)
    return taken


def _estimation_limit(limits: ScaleUpLimits, groups: Iterable[AutoscaledGroup], node_count: int) -> int | None:
    """Return the largest number of nodes of an estimate for these similar groups; None: no limit."""
    if not limits.bounded:
        return None
    room = sum(max(0, group.maximum - group.target) for group in groups)
    of_cluster = limits.nodes - node_count if limits.nodes else MOST_NODES
    return max(0, min(MOST_NODES, room, of_cluster))


def _sizes(
    chosen: ExpansionOption,
    valid: Sequence[AutoscaledGroup],
    takes: Mapping[str, Sequence[list[Pod]]],
    limits: ScaleUpLimits,
    quota: _Headroom,
    node_count: int,
) -> dict[str, int]:
    """Return the new sizes of the groups that grow."""
    group, count = chosen.group, chosen.node_count
    if limits.nodes:
        count = min(count, limits.nodes - node_count)
    count = quota.fits(group.template, count)
    if count < 1 or (limits.all_or_nothing and count < chosen.node_count):
        return {}
    similar = _similar(group, valid, takes) if limits.balance_similar else []
    targets = [group, *(each for each in similar if quota.fits(each.template, 1))]
    sizes = balanced(targets, count)
    by_name = {each.name: each for each in targets}
    for name, size in sizes.items():
        each = by_name[name]
        grown = quota.fits(each.template, size - each.target)
        quota.consume(each.template, grown)
        sizes[name] = each.target + grown
    grown = sum(size - by_name[name].target for name, size in sizes.items())
    if limits.all_or_nothing and grown < count:
        return {}
    return {name: size for name, size in sizes.items() if size != by_name[name].target}


def balanced(groups: Sequence[AutoscaledGroup], count: int) -> dict[str, int]:
    """Return the sizes of the groups after `count` nodes were added, each to the smallest group with room."""
    sizes = {group.name: group.target for group in groups}
    for _ in range(count):
        growing = [group for group in groups if sizes[group.name] < group.maximum]
        if not growing:
            break
        sizes[min(growing, key=lambda group: sizes[group.name]).name] += 1
    return sizes


# -- similar groups -------------------------------------------------------------------------------------------------


def _similar(
    group: AutoscaledGroup, valid: Iterable[AutoscaledGroup], takes: Mapping[str, Sequence[list[Pod]]]
) -> list[AutoscaledGroup]:
    """Return the other groups with similar nodes that take at least the same pods."""
    needed = {id(pods) for pods in takes[group.name]}
    return [
        each
        for each in valid
        if each is not group
        and needed <= {id(pods) for pods in takes[each.name]}
        and are_similar(group.template, each.template)
    ]


def are_similar(one: Node, other: Node) -> bool:
    """Return whether two empty nodes have nearly equal resources and equal labels, except for names and zones."""
    capacities = [amounts(node.status.get("capacity")) for node in (one, other)]
    if capacities[0].keys() != capacities[1].keys() or one.allocatable.keys() != other.allocatable.keys():
        return False
    for resource, number in capacities[0].items():
        tolerance = _MEMORY_TOLERANCE if resource == "memory" else 0.0
        if not _close(number, capacities[1][resource], tolerance):
            return False
    for resource, number in one.allocatable.items():
        if not _close(number, other.allocatable[resource], _ALLOCATABLE_TOLERANCE):
            return False
    return _compared(one) == _compared(other)


def _close(one: int, other: int, tolerance: float) -> bool:
    return abs(one - other) <= max(one, other) * tolerance


def _compared(node: Node) -> dict[str, str]:
    return {name: text for name, text in node.labels.items() if name not in _IGNORED_LABELS}
