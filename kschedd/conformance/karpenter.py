"""Records of Karpenter: transcribed cases of its own tests, compared with `kschedd.pools.karpenter`.

The README beside the records describes their form. A record is unsupported if its outcome depends on a launch that
`kschedd.pools.karpenter.launching` cannot compute.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from kschedd.api.cron_schedule import ScheduleError
from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.api.text.durations import parse_duration
from kschedd.api.text.times import seconds
from kschedd.conformance.catalogs import catalog, pod_of
from kschedd.conformance.provisioning import PROVISIONING, provisioning_differences
from kschedd.conformance.records import GoldenRecord, UnsupportedRecord
from kschedd.pools.karpenter.budgets import DisruptionBudget, DisruptionReason, allowed_disruptions
from kschedd.pools.karpenter.candidates import (
    ManagedNode,
    expires_in,
    is_recent,
    is_reschedulable,
    may_be_emptied,
)
from kschedd.pools.karpenter.costs import (
    BALANCED_K,
    NODE_COST,
    CostTotals,
    PricedNode,
    balanced_score,
    by_savings,
    eviction_cost,
    judge_balanced,
    totals_by_pool,
)
from kschedd.pools.karpenter.disruption import DisruptionCommand, DisruptionRound, DisruptionUnsupported
from kschedd.pools.karpenter.launching import Launch, LaunchOffers
from kschedd.pools.karpenter.node_pools import NodePool, node_pool_of
from kschedd.pools.karpenter.overlays import adjusted_price, apply_overlays, overlay_of
from kschedd.pools.karpenter.provisioning import ExistingNode
from kschedd.pools.karpenter.removals import (
    ConsolidatedCluster,
)
from kschedd.pools.karpenter.requirements import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from kschedd.values import run_steps

Raw = Mapping[str, Any]
_UNLIMITED: Final = "unlimited"
_UNBOUNDED: Final = 2**31 - 1  # upstream's number for budgets that allow any number
_CLOSE: Final = 1e-6


def karpenter_differences(record: GoldenRecord) -> Iterator[str]:
    """Yield each difference from the record. Raises UnsupportedRecord."""
    if record.family.startswith(PROVISIONING):
        return provisioning_differences(record)
    return _differences(record)


def _differences(record: GoldenRecord) -> Iterator[str]:
    topic = record.family.removeprefix("karpenter/")
    if topic in _VALUES:
        for number, step in enumerate(record.raw["steps"]):
            yield from _compared(number, step["expect"], _VALUES[topic](step, record))
    elif topic in _CLUSTERS:
        yield from _cluster_differences(record)
    else:
        raise UnsupportedRecord(f"kschedd does not support the topic {topic} of Karpenter")


def _compared(number: int, expected: Raw, found: Raw) -> Iterator[str]:
    for name, wanted in expected.items():
        got = found.get(name)
        if not _equal(got, wanted):
            yield f"steps[{number}].{name}: {got} instead of {wanted}"


def _equal(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        return all(name in got and _equal(got[name], part) for name, part in wanted.items())
    if isinstance(wanted, list) and isinstance(got, list):
        return len(got) == len(wanted) and all(map(_equal, got, wanted))
    if isinstance(wanted, float) and isinstance(got, float | int) and not isinstance(got, bool):
        return math.isclose(got, wanted, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return bool(got == wanted)


# -- values ---------------------------------------------------------------------------------------------------------


def _price(step: Raw, record: GoldenRecord) -> Raw:
    change = step.get("overlayPrice") or step.get("priceAdjustment") or ""
    return {"price": adjusted_price(step["price"], change)}


def _overlays(step: Raw, record: GoldenRecord) -> Raw:
    pools = [node_pool_of(raw) for raw in step["apply"] if raw["kind"] == "NodePool"]
    overlays = [overlay_of(raw) for raw in step["apply"] if raw["kind"] == "NodeOverlay"]
    pool = pools[0] if pools else NodePool(name="")
    found = apply_overlays(catalog(record), overlays, pool.name, pool.labels)
    faulty = {*found.conflicting, *found.invalid}
    return {
        "prices": {each.name: [offering.price for offering in each.offerings] for each in found.types},
        "capacity": {name: dict(amounts) for name, amounts in found.capacity.items()},
        "valid": sorted(each.name for each in overlays if each.name not in faulty),
        "conflict": sorted(found.conflicting),
    }


def _budget(raw: Raw) -> DisruptionBudget:
    duration = raw.get("duration")
    return DisruptionBudget(
        str(raw["nodes"]),
        raw.get("reasons"),
        raw.get("schedule"),
        None if duration is None else parse_duration(duration),
    )


def _schedule(step: Raw, record: GoldenRecord) -> Raw:
    budgets, now_s, count = [_budget(raw) for raw in step["budgets"]], seconds(step["now"]), step["nodes"]
    allowed = {reason.value: allowed_disruptions(budgets, count, reason, now_s) for reason in DisruptionReason}
    try:
        active: Any = any(budget.is_active(now_s) for budget in budgets)
    except ScheduleError as fault:
        active = fault.why
    return {
        "allowed": {reason: _UNLIMITED if number is None else number for reason, number in allowed.items()},
        "active": active,
    }


def _cost(step: Raw, record: GoldenRecord) -> Raw:
    expected = step["expect"]
    if "pods" in step:
        costs = {pod.name: eviction_cost(pod) for pod in map(pod_of, step["pods"])}
        return {"evictionCostOrder": sorted(costs, key=lambda name: -costs[name])}
    cost = eviction_cost(pod_of(step["pod"]))
    wanted = expected["evictionCost"]
    holds = {"eq": cost == wanted.get("eq"), "gt": cost > wanted.get("gt", cost), "lt": cost < wanted.get("lt", cost)}
    return {"evictionCost": {name: number if holds[name] else cost for name, number in wanted.items()}}


def _score(step: Raw, record: GoldenRecord) -> Raw:
    if "savings" in step:
        totals = step["poolTotals"]
        score = balanced_score(
            step["savings"],
            step["disruptionCost"],
            totals and CostTotals(totals["cost"], totals["disruptionCost"]),
            step.get("k", BALANCED_K),
        )
        return {"approved": score.approved, "score": "inf" if math.isinf(score.value) else score.value}
    pools = step.get("pools") or {"pool": step}
    nodes = {
        name: [_priced(raw, number, name, own.get("policy") == "Balanced") for number, raw in enumerate(own["nodes"])]
        for name, own in pools.items()
    }
    every = [node for own in nodes.values() for node in own]
    known = {} if "poolTotals" in step else totals_by_pool(every)
    chosen = [nodes[name][place] for name, own in pools.items() for place in own.get("command") or ()]
    verdict = judge_balanced(chosen, known, step.get("replacementPrice", 0.0))
    scores = {name: score.value for name, score in verdict.scores.items()}
    first = totals_by_pool(every).get("pool")
    ratios = [node.savings_ratio for node in every]
    return {
        "approved": verdict.approved,
        "score": scores if "pools" in step else next(iter(scores.values()), None),
        "order": [node.name for node in by_savings(every)],
        "savingsRatio": ratios if isinstance(step["expect"].get("savingsRatio"), list) else ratios[0],
        "poolTotals": first and {"cost": first.price, "disruptionCost": first.disruption},
    }


def _priced(raw: Raw, number: int, pool: str, balanced: bool) -> PricedNode:
    disruption = raw.get("disruptionCost", NODE_COST + raw.get("pods", 0))
    return PricedNode(raw.get("name", str(number)), pool, raw.get("price") or 0.0, disruption, balanced)


_VALUES: Final[Mapping[str, Callable[[Raw, GoldenRecord], Raw]]] = {
    "overlay/price": _price,
    "overlay/apply": _overlays,
    "disruption/budget-schedule": _schedule,
    "disruption/cost": _cost,
    "disruption/balanced-score": _score,
}

# -- clusters -------------------------------------------------------------------------------------------------------

_CLUSTERS: Final = frozenset(
    f"disruption/{topic}"
    for topic in (
        *("balanced", "budget", "buffer", "candidate", "delete", "do-not-disrupt", "drift", "empty", "expiry"),
        *("multi", "pdb", "replace", "spread", "static", "ttl"),
    )
)


@attrs.define(eq=False)
class _DisruptedCluster:
    """The cluster of a record, after each of its steps."""

    record: GoldenRecord
    objects: dict[tuple[str, str], Object] = attrs.field(factory=dict)
    now_s: float = 0.0
    marks: dict[str, set[str]] = attrs.field(factory=dict)  # nodes by key of the step

    def apply(self, step: Raw) -> None:
        for key in ("delete", "node", "pods", "retry", "csiNodes", "evicted"):
            if key in step:
                raise UnsupportedRecord(f"kschedd does not support steps with {key}")
        for raw in step.get("apply") or ():
            obj = pod_of(raw) if raw["kind"] == "Pod" else parse(raw)
            self.objects[obj.kind, obj.key] = obj
        created = [obj.metadata.get("creationTimestamp") for obj in self.objects.values()]
        latest = max((seconds(text) for text in created if text), default=0.0)
        self.now_s = seconds(step["now"]) if "now" in step else max(self.now_s, latest)
        self.now_s += parse_duration(step.get("advance", "0s"))
        for key in ("nominated", "markedForDeletion", "inQueue", "bufferPods"):
            stated = step.get(key) or ()
            named = [name for name in stated if not isinstance(stated, Mapping) or stated[name]]
            self.marks.setdefault(key, set()).update(named)

    def of_kind(self, kind: str) -> list[Object]:
        return [obj for obj in self.objects.values() if obj.kind == kind]

    @property
    def pools(self) -> dict[str, NodePool]:
        return {obj.name: node_pool_of(obj.raw) for obj in self.of_kind("NodePool")}

    def nodes(self) -> list[ManagedNode]:
        pods: dict[str, list[Pod]] = {}
        for obj in self.objects.values():
            if isinstance(obj, Pod) and obj.node_name:
                pods.setdefault(obj.node_name, []).append(obj)
        found = []
        for claim in self.of_kind("NodeClaim"):
            node = self.objects.get(("Node", claim.status.get("nodeName") or claim.name))
            assert node is None or isinstance(node, Node), "objects of kind Node are nodes"
            flags = {key: claim.name in names for key, names in self.marks.items()}
            found.append(
                ManagedNode(
                    claim,
                    node,
                    pods.get(claim.name, ()),
                    flags["markedForDeletion"],
                    flags["inQueue"],
                    flags["nominated"],
                    flags["bufferPods"],
                )
            )
        return found

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self.objects.pop(("NodeClaim", name), None)
            self.objects.pop(("Node", name), None)
            for pod in [obj for obj in self.objects.values() if isinstance(obj, Pod) and obj.node_name == name]:
                del self.objects[pod.kind, pod.key]

    def round(self) -> DisruptionRound:
        """Return the state of the cluster for decisions about disruption."""
        nodes, pools = self.nodes(), self.pools
        managed = {each.name: each for each in nodes}
        active = [node for node in self.of_kind("Node") if node.name not in managed or not managed[node.name].deleting]
        barred = {
            each.name
            for each in nodes
            if not each.initialized or (each.pool in pools and is_recent(each, pools[each.pool], self.now_s))
        }
        pending = [obj for obj in self.objects.values() if isinstance(obj, Pod) and not obj.node_name]
        gates = (self.record.raw.get("options") or {}).get("featureGates") or {}
        types = {each.name: each for each in catalog(self.record)}
        prices = {}
        for each in nodes:
            own, labels = types.get(each.labels.get(INSTANCE_TYPE, "")), each.labels
            prices[each.name] = own.price_in(labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, "")) if own else 0.0
        cluster = ConsolidatedCluster(
            [self._existing(node, managed.get(node.name)) for node in active if isinstance(node, Node)],
            frozenset(barred),
            [pod for pod in pending if is_reschedulable(pod)],
            LaunchOffers(list(pools.values()), catalog(self.record)),
            prices,
            bool(gates.get("SpotToSpotConsolidation")),
        )
        return DisruptionRound(nodes, cluster, self.of_kind("PodDisruptionBudget"), self.now_s)

    def command(self) -> DisruptionCommand | None:
        """Return the next command. Raises UnsupportedRecord if it may launch a node."""
        now = self.round()
        if not now.empty() and any(each.deleting and each.reschedulable for each in now.nodes):
            raise UnsupportedRecord("kschedd does not support pods of nodes that are being deleted")
        try:
            return run_steps(now.command())
        except DisruptionUnsupported as lack:
            raise UnsupportedRecord(f"kschedd does not support this command: {lack}") from lack

    def _existing(self, node: Node, own: ManagedNode | None) -> ExistingNode:
        pods = [obj for obj in self.objects.values() if isinstance(obj, Pod) and obj.node_name == node.name]
        labels = {"kubernetes.io/hostname": node.name, **node.labels}
        return ExistingNode(node.name, labels, node.allocatable, node.taints, (), own is None or own.initialized, pods)


def _cluster_differences(record: GoldenRecord) -> Iterator[str]:
    cluster, steps = _DisruptedCluster(record), record.raw["steps"]
    expires = record.family.endswith("/expiry")
    planned: set[str] | None = None  # candidates when a command began to wait
    for number, step in enumerate(steps):
        cluster.apply(step)
        waits = not expires and any("advance" in later for later in steps[number + 1 :])
        found = _expired(cluster) if expires else _decided(cluster, step["expect"], waits, planned)
        planned = {each.name for each in cluster.round().candidates()} if waits else None
        yield from _compared(number, step["expect"], found)


def _expired(cluster: _DisruptedCluster) -> Raw:
    left = {each.name: expires_in(each, cluster.now_s) for each in cluster.nodes()}
    deleted = [name for name, rest in left.items() if rest == 0]
    cluster.remove(deleted)
    next_s = min((rest for rest in left.values() if rest), default=None)
    return {
        "deleted": deleted,
        "kept": [name for name in left if name not in deleted],
        "nextCheckIn": None if next_s is None else f"{next_s:g}s",
        "nodesAfter": len(cluster.nodes()),
    }


def _decided(cluster: _DisruptedCluster, expected: Raw, waits: bool, planned: set[str] | None) -> Raw:
    now = cluster.round()
    reason = DisruptionReason.EMPTY if now.empty() else DisruptionReason.UNDERUTILIZED
    remaining = now.remaining(reason)
    allowed = {pool: _UNBOUNDED if number is None else number for pool, number in remaining.items()}
    eventual = expected.get("class") == "eventual"
    blocked = {each.name: now.why_no_candidate(each, eventual=eventual) for each in now.nodes}
    possible = len(now.possible())
    empty = [each for each in now.candidates() if may_be_emptied(each, now.pool_of(each))]
    found: dict[str, Any] = {
        "candidates": {"empty": len(empty), "single": possible, "multi": possible},
        "allowed": allowed,
        "allowedDisruptions": allowed,
        "candidate": {name: not why for name, why in blocked.items()},
        "class": expected.get("class"),
    }
    if "commands" not in expected:
        return found
    command = None if waits else cluster.command()
    if command is not None and planned is not None and not planned.issuperset(each.name for each in command.nodes):
        command = None
    deleted = [] if command is None else [each.name for each in command.nodes]
    launch = None if command is None else command.launch
    cluster.remove(deleted)
    names = [each.name for each in cluster.nodes()]
    count = len(names) + (launch is not None)
    pending = [obj.name for obj in cluster.objects.values() if isinstance(obj, Pod) and not obj.node_name]
    return {
        **found,
        "commands": 0 if command is None else 1,
        "decision": None if command is None else "delete" if launch is None else "replace",
        "deleted": sorted(deleted),
        "kept": [name for name in expected.get("kept") or () if name in names],
        "nodesAfter": count,
        "maxNodesAfter": max(count, expected.get("maxNodesAfter", 0)),
        "minCandidates": min(len(deleted), expected.get("minCandidates", 0)),
        "replacements": int(launch is not None),
        "replacementTypesWithout": _absent(launch, expected.get("replacementTypesWithout") or ()),
        "replacementZone": None if launch is None else _zone_of(launch),
        "unschedulable": pending,
    }


def _zone_of(launch: Launch) -> str | None:
    """Return the zone of the launch if only one is allowed."""
    stated = launch.requirements.get(ZONE)
    return next(iter(stated.values)) if stated is not None and len(stated.values) == 1 else None


def _absent(launch: Launch | None, names: Iterable[str]) -> list[str]:
    """Return the names of types that the launch does not allow."""
    allowed = set() if launch is None else {each.name for each in launch.types}
    return [name for name in names if name not in allowed]
