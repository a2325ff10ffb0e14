"""Records of Cluster Autoscaler: transcribed cases of its own tests, compared with `kschedd.pools.autoscaler`.

The README beside the records describes their form. A label `group` of a Node names its node group.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse, with_fields
from kschedd.api.pods import Pod
from kschedd.api.quantity import milli_value
from kschedd.api.text.durations import parse_duration
from kschedd.api.text.times import seconds
from kschedd.config.loading.load import config_from_raw
from kschedd.conformance.records import GoldenRecord, UnsupportedRecord
from kschedd.pools.autoscaler.draining import DrainOptions, DrainRules, RemainingBudgets
from kschedd.pools.autoscaler.eligibility import UtilizationOptions, eligible
from kschedd.pools.autoscaler.estimator import estimating
from kschedd.pools.autoscaler.expanders import (
    Expander,
    ExpansionOption,
    PriceExpander,
    PriorityExpander,
    least_nodes,
    least_waste,
    most_pods,
)
from kschedd.pools.autoscaler.groups import AutoscaledGroup, is_healthy
from kschedd.pools.autoscaler.scale_down import (
    GroupSizes,
    RemovableNode,
    ReplicaCount,
    UnneededNode,
    UnneededTimes,
    place_evicted,
    removable_at,
    simulate_removals,
    still_unneeded,
    unneeded_by_taints,
)
from kschedd.pools.autoscaler.scale_up import ScaleUpLimits, planning_scale_up
from kschedd.scheduling.trial_cluster import TrialCluster
from kschedd.values import run_steps

Raw = Mapping[str, Any]
_GROUP: Final = "group"
_SIMPLE: Final[Mapping[str, Expander]] = {
    "least-waste": least_waste,
    "most-pods": most_pods,
    "least-nodes": least_nodes,
}


def autoscaling_differences(record: GoldenRecord) -> Iterator[str]:
    """Yield each difference from the record. Raises UnsupportedRecord for a topic without rules."""
    topic = record.family.partition("/")[2]
    outcome = _TOPICS.get(topic)
    if outcome is None:
        raise UnsupportedRecord(f"kschedd does not support the topic {topic} of Cluster Autoscaler")
    raw = record.raw
    found = outcome(raw)
    for name, stated in raw["expect"].items():
        got, expected = found.get(name), stated
        if name == "since":
            expected = {node: (each["at"], parse_duration(each["threshold"])) for node, each in stated.items()}
        if _ordered(name, got) != _ordered(name, expected):
            yield f"{name}: {got} instead of {expected}"


def _ordered(name: str, found: Any) -> Any:
    """Return the value in a form that does not depend on the order of names."""
    if name == "options":
        return sorted((each["group"], each["nodes"]) for each in found or ())
    return sorted(found) if isinstance(found, list) else found


# -- reading ------------------------------------------------------------------------------------------------------


def _pod(raw: Raw) -> Pod:
    meta = raw["metadata"]
    named = with_fields(raw, "metadata", uid=meta.get("uid") or f"{meta.get('namespace')}/{meta['name']}")
    return Pod.from_raw(named)


def _pods(raws: Iterable[Raw] | None) -> list[Pod]:
    return [_pod(raw) for raw in raws or ()]


def _nodes(raws: Iterable[Raw]) -> list[Node]:
    return [Node.from_raw(raw) for raw in raws]


def _grouped(node: Node) -> str | None:
    return node.labels.get(_GROUP)


def _without_group(node: Node) -> Node:
    """Return the node without the label that names its group, which is part of the records and not of the cluster."""
    labels = {name: text for name, text in node.labels.items() if name != _GROUP}
    return Node.from_raw(with_fields(node.raw, "metadata", labels=labels))


def _group(raw: Raw, nodes: Iterable[Node] = ()) -> AutoscaledGroup:
    name = raw["name"]
    if raw.get("template"):
        template = Node.from_raw(raw["template"])
    else:
        own = (node for node in nodes if _grouped(node) == name)
        template = next(own, None) or Node.from_raw({"metadata": {"name": name}})
    return AutoscaledGroup(name, raw.get("min", 0), raw.get("max", 0), raw.get("target", 0), _without_group(template))


def _trials(objects: Iterable[Object]) -> TrialCluster:
    return TrialCluster.of(config_from_raw(None), objects)


def _duration(raw: Raw, name: str, default: float = 0.0) -> float:
    return parse_duration(raw[name]) if name in raw else default


# -- topics ---------------------------------------------------------------------------------------------------------


def _rules(raw: Raw) -> DrainRules:
    options = raw.get("options") or {}
    read = DrainOptions(
        options.get("skipNodesWithSystemPods", True),
        options.get("skipNodesWithLocalStorage", True),
        options.get("skipNodesWithCustomControllerPods", True),
        options.get("minReplicaCount", 0),
        _duration(options, "blockingSystemPodTimeout", 3600.0),
    )
    budgets = RemainingBudgets([parse(each) for each in raw.get("pdbs") or ()])
    return DrainRules(read, budgets, seconds(raw["now"]))


def _drain(raw: Raw) -> Raw:
    found = _rules(raw).drained(_pods(raw["pods"]))
    blocking = found.blocking
    return {
        "drainable": blocking is None,
        "move": [pod.name for pod in found.move],
        "daemonSetPods": [pod.name for pod in found.daemons],
        "waitForCompletion": [pod.name for pod in found.waiting],
        "blocking": blocking and {"pod": blocking.pod.name, "reason": blocking.reason.value},
    }


def _by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        found.setdefault(pod.node_name, []).append(pod)
    return found


def _eligibility(raw: Raw) -> Raw:
    options, nodes = raw["options"], _nodes(raw["nodes"])
    read = UtilizationOptions(
        options["utilizationThreshold"],
        options["gpuUtilizationThreshold"],
        options["ignoreDaemonSetsUtilization"],
        options.get("ignoreMirrorPodsUtilization", False),
        options["scaleDownUnreadyEnabled"],
    )
    autoscaled = {node.name for node in nodes if _grouped(node)}
    found = eligible(nodes, _by_node(_pods(raw["running"])), autoscaled, read, seconds(raw["now"]))
    return {
        "unneeded": list(found.candidates),
        "unremovable": {name: why.value for name, why in found.kept.items()},
    }


def _expander(raw: Raw) -> Raw:
    pods = {pod.name: pod for pod in _pods(raw.get("pods"))}
    templates, exists = raw.get("templates") or {}, raw.get("exists") or {}
    options = []
    for each in raw["options"]:
        name = each["group"]
        group = _group({"name": name, "template": templates.get(name)})
        group = AutoscaledGroup(name, 0, 0, 0, group.template, exists.get(name, True))
        named = [pods.get(pod) or _pod({"metadata": {"name": pod}, "spec": {}}) for pod in each["pods"]]
        options.append(ExpansionOption(group, each["nodes"], named))
    return {"best": [option.group.name for option in _expander_of(raw)(options)]}


def _expander_of(raw: Raw) -> Expander:
    kind = raw["expander"]
    if kind == "priority":
        patterns = raw.get("priorities") or {}
        return PriorityExpander({int(key): [re.compile(each) for each in own] for key, own in patterns.items()})
    if kind == "price":
        nodes, pods = raw["nodePrices"], raw["podPrices"]
        return PriceExpander(
            lambda group: nodes.get(group.name),
            lambda pod: pods.get(pod.name),
            pods.get("stabilize", 0.0),
            milli_value(raw["preferredNode"]["cpu"]),
        )
    return _SIMPLE[kind]


def _estimator(raw: Raw) -> Raw:
    groups: dict[str, list[Pod]] = {}
    for each in raw["groups"]:
        own = []
        for number in range(each["count"]):
            name = f"{each['name']}-{number}"
            own.append(_pod(with_fields(each["pod"], "metadata", name=name)))
        groups[each["name"]] = own
    template = Node.from_raw(raw["template"])
    trials = _trials(_nodes(raw["existing"]))
    found = run_steps(estimating(trials, list(groups.values()), template, raw["maxNodes"] or None))
    placed = {name for name, own in groups.items() if any(pod in own for pod in found.pods)}
    return {
        "nodes": found.node_count,
        "pods": len(found.pods),
        "placedGroup": next(iter(placed)) if len(placed) == 1 else sorted(placed),
    }


def _scale_up(raw: Raw) -> Raw:
    options = raw.get("options") or {}
    nodes = _nodes(raw["nodes"])
    groups = [_group(each, nodes) for each in raw["groups"]]
    trials = _trials([*map(_without_group, nodes), *_pods(raw["running"])])
    limits = ScaleUpLimits(
        options.get("maxNodes", 0),
        options.get("maxCores", 0),
        options.get("maxMemory", 0),
        options.get("balanceSimilarNodeGroups", False),
        options.get("allOrNothing", False),
        bounded=False,  # upstream's tests of scale-up use an estimator without limits
    )

    def choose(found: Sequence[ExpansionOption]) -> ExpansionOption | None:
        wanted = raw.get("expanderChooses")
        return next((each for each in found if wanted in (None, each.group.name)), None)

    healthy = [each for each in groups if is_healthy(each, (node for node in nodes if _grouped(node) == each.name))]
    plan = run_steps(planning_scale_up(trials, healthy, _pods(raw["pending"]), limits, choose))
    grown = {group.name: plan.sizes.get(group.name, group.target) for group in groups}
    first = next(iter(plan.sizes), None)
    targets = {group.name: group.target for group in groups}
    return {
        "scaleUp": None if first is None else {"group": first, "nodes": grown[first] - targets[first]},
        "options": [{"group": each.group.name, "nodes": each.node_count} for each in plan.options],
        "targets": grown,
        "triggered": [pod.name for pod in plan.triggered],
        "awaiting": [pod.name for pod in plan.awaiting],
        "unschedulable": [pod.name for pod in plan.unschedulable],
    }


def _planner(raw: Raw) -> Raw:
    nodes = _nodes(raw["nodes"])
    running, evicted = _pods(raw["running"]), _pods(raw["recentlyEvicted"])
    trials = _trials([*nodes, *running])
    stated = raw.get("replicaSets") or {}
    replicas = {uid: ReplicaCount(each["replicas"], each["current"]) for uid, each in stated.items()}
    place_evicted(trials, evicted, replicas)
    plan = simulate_removals(trials, raw["eligible"], _rules(raw))
    unneeded = [each.node.name for each in plan.removable]
    return {"unneeded": unneeded, "unremovable": [node.name for node in nodes if node.name not in unneeded]}


def _bare_node(name: str, ready: bool = True, *, disabled: bool = False) -> Node:
    annotations = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"} if disabled else {}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return Node.from_raw({"metadata": {"name": name, "annotations": annotations}, "status": {"conditions": conditions}})


def _unneeded(raw: Raw) -> Raw:
    times = UnneededTimes(_duration(raw, "unneededTime", 600.0), _duration(raw, "unreadyTime", 1200.0))
    if "nodes" in raw:
        found = unneeded_by_taints(
            _nodes(raw["nodes"]), times, parse_duration(raw["candidateTTL"]), seconds(raw["now"])
        )
        return {"unneeded": list(found)}
    if "calls" in raw:
        return {"since": _since(raw["calls"], times)}
    node = _bare_node("n", raw.get("ready", True), disabled=bool(raw.get("scaleDownDisabled")))
    kept = _removable(raw, times, [RemovableNode(node, ())]).kept
    return {"removed": not kept, "reason": next((why.value for why in kept.values()), None)}


def _since(calls: Iterable[Raw], times: UnneededTimes) -> Raw:
    state: dict[str, UnneededNode] = {}
    for call in calls:
        removable = [RemovableNode(_bare_node(each["name"], each["ready"]), ()) for each in call["unneeded"]]
        state = still_unneeded(state, removable, times, parse_duration(call["at"]))
    at = {parse_duration(call["at"]): call["at"] for call in calls}
    return {name: (at[each.since_s], each.threshold_s) for name, each in state.items()}


def _removable(raw: Raw, times: UnneededTimes, nodes: Sequence[RemovableNode]) -> Any:
    group = None if not raw.get("group") else _group(raw["group"])
    groups = {} if group is None else {each.node.name: group for each in nodes}
    deleting = {} if group is None else {group.name: raw.get("ongoingDeletions", 0)}
    minimum = raw.get("clusterMinimum") or {}
    spare = {name: len(nodes) - least for name, least in minimum.items()}
    sizes = GroupSizes(groups, deleting, spare)
    state = still_unneeded({}, nodes, times, 0.0)
    return removable_at(state.values(), sizes, parse_duration(raw["unneededFor"]), lambda node: {"nodes": 1})


def _min_size(raw: Raw) -> Raw:
    times = UnneededTimes(_duration(raw, "unneededTime"), _duration(raw, "unneededTime"))
    pod = _pod({"metadata": {"name": "p"}, "spec": {}})
    nodes = [RemovableNode(_bare_node(f"empty-{number}"), ()) for number in range(raw["empty"])]
    nodes += [RemovableNode(_bare_node(f"drain-{number}"), [pod]) for number in range(raw["drain"])]
    found = _removable(raw, times, nodes)
    return {"emptyRemoved": len(found.empty), "drainRemoved": len(found.drain)}


_TOPICS: Final[Mapping[str, Callable[[Raw], Raw]]] = {
    "drain": _drain,
    "eligibility": _eligibility,
    "estimator": _estimator,
    "expander": _expander,
    "min-size": _min_size,
    "planner": _planner,
    "scale-up": _scale_up,
    "unneeded": _unneeded,
}
