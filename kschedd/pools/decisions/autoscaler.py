"""Cluster Autoscaler's decisions for a whole cluster: scale-ups for pending pods, and removals of nodes.

In each loop one group grows, or one set of similar groups. The next loop starts with the new nodes, as if they were
ready. The template of a group is always that of its file.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from kschedd.api.pods import Pod
from kschedd.api.resources import Resources
from kschedd.pools.autoscaler.draining import DrainOptions, DrainRules, RemainingBudgets
from kschedd.pools.autoscaler.eligibility import NodeUtilization, UtilizationOptions, eligible
from kschedd.pools.autoscaler.estimator import node_like
from kschedd.pools.autoscaler.expanders import (
    Expander,
    ExpansionOption,
    PriceExpander,
    PriorityExpander,
    least_nodes,
    least_waste,
    most_pods,
)
from kschedd.pools.autoscaler.groups import AutoscaledGroup, node_is_ready
from kschedd.pools.autoscaler.pods import is_recreated
from kschedd.pools.autoscaler.scale_down import (
    GroupSizes,
    RemovableNode,
    UnneededNode,
    UnneededTimes,
    UnremovableNode,
    removable_at,
    simulate_removals,
    simulating_removals,
    still_unneeded,
)
from kschedd.pools.autoscaler.scale_up import Choice, ScaleUpLimits, planning_scale_up
from kschedd.pools.autoscaler.unremovable import KeptReason
from kschedd.pools.cluster import (
    NodeLaunch,
    PooledCluster,
    PoolRefusal,
    Removal,
    RemovalVerdict,
    ScaleDown,
    ScaleUp,
    difference,
)
from kschedd.pools.karpenter.requirements import CAPACITY_TYPE, INSTANCE_TYPE
from kschedd.pools.reading import Pools, pool_name
from kschedd.pools.trials import PlacementTrials, placing_on_any
from kschedd.values import in_parts, run_steps

#: pods with a lower priority neither cause a scale-up nor keep a node
EXPENDABLE: Final = -10
_MOST_LOOPS: Final = 100
_PART: Final = 50  # nodes that are examined between two pauses
_SIMPLE: Final[Mapping[str, Expander]] = {
    "least-waste": least_waste,
    "most-pods": most_pods,
    "least-nodes": least_nodes,
}
_CONSTANT_POD: Final[Resources] = {"cpu": 500, "memory": 500 * 1024 * 1024}


def choice_of(pools: Pools, rng: random.Random) -> Choice:
    """Return the chain of expanders of the settings; `rng` chooses among the options that remain."""
    chain = [_expander(name, pools) for name in pools.settings.expander if name != "random"]

    def choose(options: Sequence[ExpansionOption]) -> ExpansionOption | None:
        best = list(options)
        for expander in chain:
            best = expander(best)
            if len(best) < 2:
                break
        return rng.choice(best) if best else None

    return choose


def _expander(name: str, pools: Pools) -> Expander:
    if name == "priority":
        return PriorityExpander({key: [re.compile(each) for each in own] for key, own in pools.priorities.items()})
    if name == "price":
        units = _unit_prices(pools.groups)

        def price(requests: Mapping[str, int]) -> float:
            return sum(units[resource] * requests.get(resource, 0) for resource in units)

        preferred = min((group.template.allocatable.get("cpu", 0) for group in pools.groups), default=1000)
        return PriceExpander(
            lambda group: group.price, lambda pod: price(pod.requests), price(_CONSTANT_POD), preferred or 1000
        )
    return _SIMPLE[name]


def _unit_prices(groups: Iterable[AutoscaledGroup]) -> dict[str, float]:
    """Return prices of cpu and memory: each is half of the price of the group that has most of it for the money.

    Cluster Autoscaler has such prices only from cloud providers.
    """
    priced = [group for group in groups if group.price is not None]
    found = {}
    for resource in ("cpu", "memory"):
        prices = [
            (group.price or 0.0) / 2 / there for group in priced if (there := group.template.allocatable.get(resource))
        ]
        found[resource] = min(prices, default=0.0)
    return found


def sized_groups(
    cluster: PooledCluster, pools: Pools, coming: Mapping[str, int] | None = None
) -> list[AutoscaledGroup]:
    """Return the groups with their sizes: nodes in the cluster and `coming` nodes by group."""
    sizes: dict[str, int] = dict(coming or {})
    for node in cluster.nodes:
        name = pool_name(node)
        sizes[name] = sizes.get(name, 0) + 1
    return [attrs.evolve(group, target=sizes.get(group.name, 0)) for group in pools.groups]


def plan_launches(
    cluster: PooledCluster,
    pools: Pools,
    trials: PlacementTrials,
    rng: random.Random,
    *,
    loops: int = _MOST_LOOPS,
    groups: Sequence[AutoscaledGroup] | None = None,
) -> ScaleUp:
    """Return the launches of at most `loops` loops. `trials` is unchanged afterwards."""
    return run_steps(launching(cluster, pools, trials, rng, loops=loops, groups=groups))


def launching(
    cluster: PooledCluster,
    pools: Pools,
    trials: PlacementTrials,
    rng: random.Random,
    *,
    loops: int = _MOST_LOOPS,
    groups: Sequence[AutoscaledGroup] | None = None,
) -> Generator[None, None, ScaleUp]:
    """Return the launches of `plan_launches`, with pauses."""
    mark = trials.mark()
    try:
        planned = _Loops(cluster, pools, trials, groups or sized_groups(cluster, pools), choice_of(pools, rng))
        return (yield from planned.run(loops))
    finally:
        trials.revert(mark)


@attrs.define(eq=False)
class _Loops:
    cluster: PooledCluster
    pools: Pools
    trials: PlacementTrials
    groups: Sequence[AutoscaledGroup]
    choose: Choice
    launched: dict[str, tuple[AutoscaledGroup, list[Pod]]] = attrs.field(factory=dict, init=False)
    existing: list[tuple[Pod, str]] = attrs.field(factory=list, init=False)
    left: list[Pod] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.left = [pod for pod in self.cluster.pending if pod.priority >= EXPENDABLE]

    def run(self, loops: int) -> Generator[None, None, ScaleUp]:
        groups = []
        for group in self.groups:
            template = yield from self._with_daemons(group)
            groups.append(attrs.evolve(group, template=template))
        self.groups = groups
        limits = ScaleUpLimits(nodes=self.pools.settings.max_nodes, balance_similar=self.pools.settings.balance_similar)
        yield from self._place()
        for _ in range(loops):
            if not self.left:
                break
            plan = yield from planning_scale_up(self.trials, self.groups, self.left, limits, self.choose)
            if not plan.sizes:
                break
            for group in self.groups:
                self._grow(group, plan.sizes.get(group.name, group.target) - group.target)
            self.groups = [
                attrs.evolve(group, target=plan.sizes.get(group.name, group.target)) for group in self.groups
            ]
            before = len(self.left)
            yield from self._place()
            if len(self.left) == before:
                break
        templates = {group.name: group.template for group in self.pools.groups}
        launches = [
            launch_of(group, templates[group.name], name, pods) for name, (group, pods) in self.launched.items()
        ]
        expendable = [pod for pod in self.cluster.pending if pod.priority < EXPENDABLE]
        why = f"its priority is below {EXPENDABLE} (--expendable-pods-priority-cutoff)"
        refused = []
        for pod in self.left:
            yield
            refused.append((pod, self._refusals(pod)))
        return ScaleUp(
            launches,
            self.existing,
            [*refused, *((pod, [PoolRefusal("", "priority", why)]) for pod in expendable)],
        )

    def _with_daemons(self, group: AutoscaledGroup) -> Generator[None, None, Node]:
        """Return the template without the resources of the DaemonSets that run on it."""
        template = group.template
        mark, name = self.trials.mark(), f"{template.name}-with-daemons"
        self.trials.put_node(node_like(template, name))
        daemons = []
        for pod in self.cluster.daemons:
            yield
            if not self.trials.why_not(pod, name):
                daemons.append(pod)
        self.trials.revert(mark)
        if not daemons:
            return template
        free = {**template.allocatable}
        free["pods"] = free.get("pods", 0) - len(daemons)
        for pod in daemons:
            for resource, number in pod.requests.items():
                free[resource] = free.get(resource, 0) - number
        stated = {key: f"{number}m" if key == "cpu" else str(number) for key, number in free.items()}
        return Node.from_raw({**template.raw, "status": {**template.status, "allocatable": stated}})

    def _grow(self, group: AutoscaledGroup, count: int) -> None:
        for _ in range(count):
            name = next(self.cluster.free_names(group.name, self.launched))
            self.trials.put_node(node_like(group.template, name))
            self.launched[name] = (group, [])

    def _place(self) -> Generator[None, None, None]:
        """Place the pods that fit on a node now, and keep the others."""
        left = []
        for pod in self.left:
            name = yield from placing_on_any(self.trials, pod, lambda name: True)
            if name is None:
                left.append(pod)
            elif name in self.launched:
                self.launched[name][1].append(pod)
            else:
                self.existing.append((pod, name))
        self.left = left

    def _refusals(self, pod: Pod) -> list[PoolRefusal]:
        return [PoolRefusal(group.name, *self._rule(pod, group)) for group in self.groups]

    def _rule(self, pod: Pod, group: AutoscaledGroup) -> tuple[str, str]:
        if group.target >= group.maximum:
            return "max size", f"it has its maximum of {group.maximum} nodes"
        mark, name = self.trials.mark(), f"{group.name}-new"
        self.trials.put_node(node_like(group.template, name))
        reasons = self.trials.why_not(pod, name)
        self.trials.revert(mark)
        if reasons:
            return "template", f"its template rejects the pod: {', '.join(reasons)}"
        return "limit", "a node would fit, but the maximum number of nodes is reached"


def launch_of(group: AutoscaledGroup, template: Node, name: str, pods: Sequence[Pod]) -> NodeLaunch:
    """Return the launch of a node of the group."""
    raw: dict[str, Any] = dict(node_like(template, name).raw)
    raw["metadata"] = {key: text for key, text in raw["metadata"].items() if key != "uid"}
    raw["metadata"]["labels"] = {**raw["metadata"]["labels"], HOSTNAME_LABEL: name}
    labels = template.labels
    return NodeLaunch(
        group.name,
        {"apiVersion": "v1", "kind": "Node", **raw},
        labels.get(INSTANCE_TYPE, group.name),
        group.price,
        pods,
        labels.get(ZONE_LABEL, ""),
        labels.get(CAPACITY_TYPE, ""),
    )


# -- removals -------------------------------------------------------------------------------------------------------

_MOST_TOGETHER: Final = 10  # nodes that are removed at the same time, at most one of them with pods
_TEXTS: Final[Mapping[KeptReason, str]] = {
    KeptReason.NOT_AUTOSCALED: "the node belongs to no node group",
    KeptReason.DISABLED: "the node has the annotation cluster-autoscaler.kubernetes.io/scale-down-disabled",
    KeptReason.BEING_DELETED: "the node is being deleted",
    KeptReason.MIN_SIZE_REACHED: "its group has its minimum size",
    KeptReason.NO_PLACE_TO_MOVE_PODS: "its pods do not fit on the other nodes",
    KeptReason.UNEXPECTED_ERROR: "the node has no allocatable cpu or memory",
}


def plan_removal(
    cluster: PooledCluster,
    pools: Pools,
    trials: PlacementTrials,
    names: Sequence[str] | None = None,
    *,
    scan: bool = False,
    check: Callable[[], None] = lambda: None,
) -> ScaleDown:
    """Return the nodes that the next loops remove, as if they had been unneeded long enough.

    With `names`, only these nodes are removed; their utilization does not matter. With `scan`, there is a verdict about
    each node: nodes are examined in order, and a node that takes pods of a removed node is needed. `trials` is
    unchanged afterwards.
    """
    mark = trials.mark()
    try:
        return _Removals(cluster, pools, trials, check).decided(names, scan=scan)
    finally:
        trials.revert(mark)


@attrs.define(eq=False)
class _Removals:
    cluster: PooledCluster
    pools: Pools
    trials: PlacementTrials
    check: Callable[[], None]

    def decided(self, names: Sequence[str] | None, *, scan: bool) -> ScaleDown:
        groups = {group.name: group for group in sized_groups(self.cluster, self.pools)}
        group_of = {node.name: groups[pool] for node in self.cluster.nodes if (pool := pool_name(node)) in groups}
        settings = self.pools.settings
        options = UtilizationOptions(settings.utilization if names is None else math.inf)
        examined = [node for node in self.cluster.nodes if names is None or node.name in names]
        found = eligible(examined, self.cluster.pods, group_of, options, self.cluster.now_s)
        rules = DrainRules(DrainOptions(), RemainingBudgets(self.cluster.budgets), self.cluster.now_s)
        sizes = GroupSizes(group_of, {}, {})
        kept: dict[str, tuple[str, str]] = {
            name: (why.value, _kept_text(why, found.utilization.get(name))) for name, why in found.kept.items()
        }
        removable: list[RemovableNode] = []
        for name in self._empty_first(found.candidates):
            self.check()
            plan = simulate_removals(self.trials, [name], rules)
            for one in plan.unremovable:
                kept[name] = (one.reason.value, _blocked_text(one))
            for each in plan.removable:
                if (why := sizes.why_kept(each.node, {})) is not None:
                    kept[name] = (why.value, _kept_text(why, None))
                else:
                    removable.append(each)
        return self._answer(examined if scan or names is not None else (), group_of, kept, removable)

    def _empty_first(self, names: Sequence[str]) -> list[str]:
        return sorted(names, key=lambda name: any(is_recreated(pod) for pod in self.cluster.pods.get(name, ())))

    def _answer(
        self,
        examined: Iterable[Node],
        group_of: Mapping[str, AutoscaledGroup],
        kept: Mapping[str, tuple[str, str]],
        removable: Sequence[RemovableNode],
    ) -> ScaleDown:
        verdicts = []
        for node in examined:
            group = group_of.get(node.name)
            price = None if group is None else group.price
            own = RemovalVerdict(
                node.name, "" if group is None else group.name, price, len(self.cluster.pods.get(node.name, ())), "keep"
            )
            if node.name in kept:
                own = attrs.evolve(own, rule=kept[node.name][0], why=kept[node.name][1])
            else:
                own = attrs.evolve(own, verdict="delete", rule="Unneeded", saved=price)
            verdicts.append(own)
        empty = [each.node.name for each in removable if not each.move]
        drained = [each.node.name for each in removable if each.move]
        chosen = [*empty[:_MOST_TOGETHER], *drained[:1]][:_MOST_TOGETHER]
        if not chosen:
            return ScaleDown(verdicts, None)
        saved = difference([group_of[name].price for name in chosen], None)
        return ScaleDown(verdicts, Removal("Unneeded", chosen, None, saved))


def _kept_text(why: KeptReason, used: NodeUtilization | None) -> str:
    if why is KeptReason.NOT_UNDERUTILIZED and used is not None:
        return f"{used.share:.0%} of its {used.resource} is requested, above the threshold"
    return _TEXTS.get(why, why.value)


def _blocked_text(one: UnremovableNode) -> str:
    if one.blocking is None:
        return _kept_text(one.reason, None)
    return f"pod {one.blocking.pod.key}: {one.blocking.reason.value}"


@attrs.frozen(eq=False)
class UnneededNow:
    """The unneeded nodes of a loop, and the nodes that have been unneeded long enough."""

    unneeded: dict[str, UnneededNode]
    removal: Removal | None


def unneeded_nodes(
    cluster: PooledCluster,
    pools: Pools,
    trials: PlacementTrials,
    before: Mapping[str, UnneededNode],
    skipped: frozenset[str],
) -> Generator[None, None, UnneededNow]:
    """Return the unneeded nodes of a loop, with pauses.

    `before` are those of the last loop; `skipped` nodes are not removed.
    """
    settings = pools.settings
    groups = {group.name: group for group in sized_groups(cluster, pools)}
    group_of = {node.name: groups[pool] for node in cluster.nodes if (pool := pool_name(node)) in groups}
    options = UtilizationOptions(settings.utilization)
    examined = [node for node in cluster.nodes if node.name not in skipped and node_is_ready(node)]
    candidates: list[str] = []
    for part in in_parts(examined, _PART):
        yield
        candidates += eligible(part, cluster.pods, group_of, options, cluster.now_s).candidates
    rules = DrainRules(DrainOptions(), RemainingBudgets(cluster.budgets), cluster.now_s)

    def rank(name: str) -> tuple[bool, bool]:
        return any(is_recreated(pod) for pod in cluster.pods.get(name, ())), name not in before

    plan = yield from simulating_removals(trials, sorted(candidates, key=rank), rules)
    times = UnneededTimes(settings.unneeded_s, settings.unready_s)
    unneeded = still_unneeded(before, plan.removable, times, cluster.now_s)
    deleting = Counter(group_of[name].name for name in skipped if name in group_of)
    now = removable_at(unneeded.values(), GroupSizes(group_of, deleting, {}), cluster.now_s, lambda node: {})
    names = [each.node.name for each in (*now.empty[:_MOST_TOGETHER], *now.drain[:1])][:_MOST_TOGETHER]
    if not names:
        return UnneededNow(unneeded, None)
    saved = difference([group_of[name].price for name in names], None)
    kept = {name: each for name, each in unneeded.items() if name not in names}
    return UnneededNow(kept, Removal("Unneeded", names, None, saved))
