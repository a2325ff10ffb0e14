"""Records of provisioning by Karpenter: rounds over pending pods, compared with `kschedd.pools.karpenter.provisioning`.

The provider launches the cheapest offering of each planned node; the pods are bound to it at once.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse, with_fields
from kschedd.api.pods import Pod
from kschedd.api.resources import Resources, amounts
from kschedd.api.selecting.terms import parse_taint
from kschedd.api.text.durations import parse_duration
from kschedd.conformance.catalogs import catalog, pod_of
from kschedd.conformance.records import GoldenRecord, UnsupportedRecord
from kschedd.pools.karpenter.candidates import is_reschedulable
from kschedd.pools.karpenter.instance_types import InstanceType, without_used
from kschedd.pools.karpenter.launching import (
    Launch,
    LaunchOffers,
    demands_of,
    launched_node,
    total_requests,
    unmet_min_values,
)
from kschedd.pools.karpenter.node_pools import NodePool, node_pool_of
from kschedd.pools.karpenter.provisioning import UNREGISTERED, ExistingNode, plan_round
from kschedd.pools.karpenter.requirements import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODE_POOL,
    ZONE,
    NodeRequirement,
    requirements_of,
)
from kschedd.pools.volumes import ClaimedVolumes

PROVISIONING: Final = "karpenter/provisioning/"
Raw = Mapping[str, Any]
_STEP_KEYS: Final = frozenset(
    ("now", "delete", "apply", "node", "csiNodes", "advance", "pods", "retry", "expect", "markedForDeletion")
)
_HOSTNAME: Final = "kubernetes.io/hostname"


def provisioning_differences(record: GoldenRecord) -> Iterator[str]:
    """Yield each difference from the record. Raises UnsupportedRecord."""
    options = record.raw.get("options") or {}
    known = {"preferencePolicy", "minValuesPolicy", "defaultTerminationGracePeriod", "featureGates"}
    if unknown := {*options} - known:
        raise UnsupportedRecord(f"kschedd does not support the options {', '.join(sorted(unknown))} of Karpenter")
    cluster = _Provisioned(record, options)
    for number, step in enumerate(record.raw["steps"]):
        cluster.apply(step)
        for name, wanted in step["expect"].items():
            check = _CHECKS.get(name)
            if check is None:
                raise UnsupportedRecord(f"kschedd does not judge {name}")
            for difference in check(cluster, wanted):
                yield f"steps[{number}].{name}: {difference}"


@attrs.define(eq=False)
class _LaunchedNode:
    """A node with its pods; `launch` and `type` are None for a node that existed before."""

    existing: ExistingNode
    capacity: Resources
    launch: Launch | None = None
    type: InstanceType | None = None

    @property
    def name(self) -> str:
        return self.existing.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.existing.labels


@attrs.define(eq=False)
class _Provisioned:
    """The cluster of a record, after each of its steps."""

    record: GoldenRecord
    options: Raw
    objects: dict[tuple[str, str], Object] = attrs.field(factory=dict)
    nodes: dict[str, _LaunchedNode] = attrs.field(factory=dict)
    node_of: dict[str, str] = attrs.field(factory=dict)  # pod -> node, also of pods that are gone
    pending: dict[str, Pod] = attrs.field(factory=dict)
    new: list[_LaunchedNode] = attrs.field(factory=list)  # of the last step
    tried: list[str] = attrs.field(factory=list)
    offers: LaunchOffers = attrs.field(default=LaunchOffers((), ()))  # of the last round
    marked: set[str] = attrs.field(factory=set)  # nodes that are being deleted
    unmet: set[str] = attrs.field(factory=set)  # labels whose minValues prevented a launch

    def apply(self, step: Raw) -> None:
        if unknown := step.keys() - _STEP_KEYS:
            raise UnsupportedRecord(f"kschedd does not support steps with {', '.join(sorted(unknown))}")
        for each in step.get("delete") or ():
            self._delete(each)
        for raw in step.get("apply") or ():
            self._apply(raw)
        if "node" in step:
            self._change(step["node"])
        for each in step.get("csiNodes") or ():
            node = self.of(each["csiNodeOf"])
            limited = {**node.existing.volume_limits, each["driver"]: each["count"]}
            node.existing = attrs.evolve(node.existing, volume_limits=limited)
        pods = [self._with_overhead(pod_of(raw)) for raw in step.get("pods") or ()]
        retried = step.get("retry") or ()
        names = list(self.pending) if retried == "unscheduled" else retried
        pods += [self.pending[name] for name in names if name in self.pending]
        self.tried = [pod.name for pod in pods]
        for each in step.get("markedForDeletion") or ():
            self.marked.add(self.node_of[each["nodeOf"]])
        for name in self.marked:
            node = self.nodes[name]
            pods += [pod for pod in node.existing.pods if is_reschedulable(pod)]
            node.existing = attrs.evolve(node.existing, pods=())
        self._round(pods)

    def _delete(self, each: Raw) -> None:
        if "pod" in each:
            self._remove_pod(each["pod"])
        elif "nodeOf" in each:
            self.nodes.pop(self.node_of[each["nodeOf"]])
        elif each.get("pods") == "unscheduled":
            self.pending.clear()
        elif "podsOnNodesWhere" in each:
            for node in self.nodes.values():
                if all(node.labels.get(key) in values for key, values in each["podsOnNodesWhere"].items()):
                    node.existing = attrs.evolve(node.existing, pods=())
        else:
            raise UnsupportedRecord("kschedd does not support this deletion")

    def _remove_pod(self, name: str) -> None:
        for node in self.nodes.values():
            node.existing = attrs.evolve(node.existing, pods=[pod for pod in node.existing.pods if pod.name != name])

    def _apply(self, raw: Raw) -> None:
        if raw["kind"] == "Pod":
            pod = pod_of(raw)
            if pod.node_name not in self.nodes:
                raise UnsupportedRecord("kschedd does not support applied pods without a node")
            node = self.nodes[pod.node_name]
            node.existing = attrs.evolve(node.existing, pods=[*node.existing.pods, pod])
            self.node_of[pod.name] = node.name
            return
        obj = parse(raw)
        if obj.kind == "NodeClaim":
            raise UnsupportedRecord(f"kschedd does not support objects of kind {obj.kind} here")
        self.objects[obj.kind, obj.key] = obj
        if isinstance(obj, Node):
            labels = {_HOSTNAME: obj.name, **obj.labels}
            made = ExistingNode(obj.name, labels, obj.allocatable, obj.taints)
            self.nodes[obj.name] = _LaunchedNode(made, amounts(obj.status.get("capacity") or {}))

    def _change(self, change: Raw) -> None:
        node = self.nodes[self.node_of[change["of"]]]
        if unknown := change.keys() - {"of", "taints", "addTaints", "labels", "initialized", "capacity"}:
            raise UnsupportedRecord(f"kschedd does not support changes of {', '.join(sorted(unknown))}")
        own = node.existing
        if change.get("initialized"):
            gone = {UNREGISTERED.key, *(taint.key for taint in own.startup_taints)}
            own = attrs.evolve(own, taints=[taint for taint in own.taints if taint.key not in gone])
        taints = list(own.taints) if "taints" not in change else [parse_taint(raw) for raw in change["taints"]]
        taints += [parse_taint(raw) for raw in change.get("addTaints") or ()]
        allocatable = amounts(change["capacity"]) if "capacity" in change else own.allocatable
        node.existing = attrs.evolve(
            own,
            taints=taints,
            labels={**own.labels, **(change.get("labels") or {})},
            initialized=change.get("initialized", own.initialized),
            allocatable={**own.allocatable, **allocatable},
        )

    def _with_overhead(self, pod: Pod) -> Pod:
        runtime = self.objects.get(("RuntimeClass", str(pod.spec.get("runtimeClassName"))))
        overhead = None if runtime is None else (runtime.raw.get("overhead") or {}).get("podFixed")
        return pod if overhead is None else Pod.from_raw(with_fields(pod.raw, "spec", overhead=overhead))

    # -- rounds -----------------------------------------------------------------------------------------------

    def pools(self) -> list[NodePool]:
        found = []
        for (kind, _), obj in self.objects.items():
            conditions = obj.status.get("conditions") or ()
            ready = all(each.get("status") == "True" for each in conditions if each.get("type") == "Ready")
            if kind == "NodePool" and ready and not obj.deleting:
                found.append(node_pool_of(obj.raw))
        return found

    def _round(self, pods: Sequence[Pod]) -> None:
        pools = self.pools()
        daemons = [self._daemon_of(obj) for (kind, _), obj in self.objects.items() if kind == "DaemonSet"]
        offers = LaunchOffers(
            pools,
            without_used(catalog(self.record), [node.labels for node in self.nodes.values()]),
            daemons,
            {pool.name: self._left(pool) for pool in pools if pool.limits},
            self.options.get("minValuesPolicy") != "BestEffort",
            volumes=ClaimedVolumes.of(self.objects.values()),
        )
        active = [node.existing for node in self.nodes.values() if node.name not in self.marked]
        existing = [self._with_daemons(node, daemons) for node in active]
        preferences = self.options.get("preferencePolicy") != "Ignore"
        namespaces = {obj.name: obj.labels for (kind, _), obj in self.objects.items() if kind == "Namespace"}
        gates = self.options.get("featureGates") or {}
        plan = plan_round(
            pods,
            existing,
            offers,
            namespaces=namespaces,
            preferences=preferences,
            reserving=gates.get("ReservedCapacity", True),
        )
        by_uid = {pod.uid: pod for pod in pods}
        for uid, name in plan.placed.items():
            self._bind(by_uid[uid], name)
        self.new = [self._launched(launch) for launch in plan.launches]
        for node, launch in zip(self.new, plan.launches, strict=True):
            self.nodes[node.name] = node
            for pod in launch.pods:
                self._bind(pod, node.name)
        self.pending |= {pod.name: pod for pod in plan.failed}
        self.offers, self.unmet = offers, {key for pod in plan.failed for key in _unmet(offers, pod)}

    def _bind(self, pod: Pod, name: str) -> None:
        node = self.nodes[name]
        node.existing = attrs.evolve(node.existing, pods=[*node.existing.pods, pod])
        self.node_of[pod.name] = name
        self.pending.pop(pod.name, None)

    @staticmethod
    def _daemon_of(obj: Object) -> Pod:
        template = obj.spec["template"]
        meta = {**(template.get("metadata") or {}), "name": obj.name, "namespace": obj.namespace, "uid": obj.key}
        return Pod.from_raw({"metadata": meta, "spec": template["spec"]})

    @staticmethod
    def _with_daemons(node: ExistingNode, daemons: Iterable[Pod]) -> ExistingNode:
        empty = attrs.evolve(node, pods=())
        running = [pod for pod in daemons if any(empty.admits(each) for each in demands_of(pod, preferences=False))]
        return attrs.evolve(node, daemons=running)

    def _left(self, pool: NodePool) -> Resources:
        own = [node for node in self.nodes.values() if node.labels.get(NODE_POOL) == pool.name]
        used = {name: sum(node.capacity.get(name, 0) for node in own) for name in pool.limits}
        used["nodes"] = len(own)
        return {name: limit - used[name] for name, limit in pool.limits.items()}

    def _launched(self, launch: Launch) -> _LaunchedNode:
        name = f"node-{len(self.nodes) + len(self.node_of)}-{launch.pods[0].name}"
        made, pool = launched_node(launch, name), launch.pool
        taints = [*pool.taints, *pool.startup_taints, UNREGISTERED]
        allocatable = made.type.allocatable
        existing = ExistingNode(name, made.labels, allocatable, taints, pool.startup_taints, initialized=False)
        return _LaunchedNode(existing, made.type.capacity, launch, made.type)

    # -- questions --------------------------------------------------------------------------------------------

    def of(self, pod: str) -> _LaunchedNode:
        return self.nodes[self.node_of[pod]]

    def scheduled(self, pod: str) -> bool:
        return pod in self.node_of and pod not in self.pending


def _unmet(offers: LaunchOffers, pod: Pod) -> Iterator[str]:
    """Yield the labels whose minValues prevent a launch for the pod."""
    relaxed = attrs.evolve(offers, minimum_is_strict=False)
    for pool in offers.pools_in_order():
        opened = relaxed.opened(pool)
        for demand in demands_of(pod):
            launch = None if opened is None else relaxed.added(opened, demand)
            yield from () if launch is None else unmet_min_values(launch.requirements, launch.types)


# -- expectations ---------------------------------------------------------------------------------------------------


def _scheduled(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    yield from (f"{pod} is pending" for pod in wanted if not cluster.scheduled(pod))


def _unschedulable(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    yield from (f"{pod} is on {cluster.node_of[pod]}" for pod in wanted if cluster.scheduled(pod))


def _number(found: int, wanted: Any) -> Iterator[str]:
    if found != wanted:
        yield f"{found} instead of {wanted}"


def _counts(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    placed = sum(map(cluster.scheduled, cluster.tried))
    for name, number in (("scheduled", placed), ("unschedulable", len(cluster.tried) - placed)):
        if name in wanted:
            yield from _number(number, wanted[name])


def _together(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pods in wanted:
        if len({cluster.node_of.get(pod) for pod in pods}) != 1:
            yield f"{', '.join(pods)} are on several nodes"


def _apart(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pods in wanted:
        if len({cluster.node_of.get(pod) for pod in pods}) != len(pods):
            yield f"{', '.join(pods)} share a node"


def _on_node(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    yield from (f"{pod} is not on {node}" for pod, node in wanted.items() if cluster.node_of.get(pod) != node)


def _same_node(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    yield from _on_node(cluster, {pod: cluster.node_of[other] for pod, other in wanted.items()})


def _other_node(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, other in wanted.items():
        if cluster.node_of.get(pod) == cluster.node_of[other]:
            yield f"{pod} is on the node of {other}"


def _labels(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, labels in wanted.items():
        own = cluster.of(pod).labels
        yield from (f"{pod}: {key} is {own.get(key)}" for key, value in labels.items() if own.get(key) != value)


def _other_labels(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, labels in wanted.items():
        own = cluster.of(pod).labels
        yield from (f"{pod}: {key} is {value}" for key, value in labels.items() if own.get(key) == value)


def _present(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, keys in wanted.items():
        yield from (f"{pod}: {key} is missing" for key in keys if key not in cluster.of(pod).labels)


def _absent(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, keys in wanted.items():
        yield from (f"{pod}: {key} exists" for key in keys if key in cluster.of(pod).labels)


def _types(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    yield from _labels(cluster, {pod: {INSTANCE_TYPE: name} for pod, name in wanted.items()})


def _all_types(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    found = {node.labels[INSTANCE_TYPE] for node in cluster.nodes.values() if node.launch is not None}
    if found != {*wanted}:
        yield f"{sorted(found)} instead of {sorted(wanted)}"


def _capacity(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, stated in wanted.items():
        own = cluster.of(pod).capacity
        yield from (
            f"{pod}: {name} is {own.get(name)}" for name, number in amounts(stated).items() if own.get(name) != number
        )


def _of_pool(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    yield from _labels(cluster, {pod: {NODE_POOL: name} for pod, name in wanted.items()})


def _launch_of(cluster: _Provisioned, pod: str) -> Launch:
    launch = cluster.of(pod).launch
    assert launch is not None, f"the node of {pod} is expected to be new"
    return launch


def _cheapest(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod in wanted:
        node, launch = cluster.of(pod), _launch_of(cluster, pod)
        assert node.type is not None, "a new node has a type"
        own = node.type.price_in(node.labels[ZONE], node.labels[CAPACITY_TYPE])
        lowest = min(offering.price for each in launch.types for offering in launch.offerings(each))
        if own != lowest:
            yield f"{pod}: {own} instead of {lowest}"


def _types_have(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, labels in wanted.items():
        for each in _launch_of(cluster, pod).types:
            for key, value in labels.items():
                if key not in each.requirements or not each.requirements[key].allows(value):
                    yield f"{pod}: type {each.name} does not have {key}={value}"


def _types_fit(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod in wanted["pods"]:
        node = cluster.of(pod)
        for each in _launch_of(cluster, pod).types:
            requested = total_requests(node.existing.pods)
            if any(number > each.allocatable.get(name, 0) for name, number in requested.items()):
                yield f"{pod}: type {each.name} is too small"


def _at_least_types(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, number in wanted.items():
        if len(_launch_of(cluster, pod).types) < number:
            yield f"{pod}: {len(_launch_of(cluster, pod).types)} types instead of {number}"


def _claim_types(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, names in wanted.items():
        found = {each.name for each in _launch_of(cluster, pod).types}
        if found != {*names}:
            yield f"{pod}: {sorted(found)} instead of {sorted(names)}"


def _grace(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    default = cluster.options.get("defaultTerminationGracePeriod")
    for node in cluster.new:
        assert node.launch is not None, "a new node was launched"
        own = node.launch.pool.termination_grace_s
        own = parse_duration(default) if own is None and default is not None else own
        if own != (None if wanted is None else parse_duration(wanted)):
            yield f"{own} s instead of {wanted}"


def _requests(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, stated in wanted.items():
        launch = _launch_of(cluster, pod)
        found = total_requests([*launch.pods, *cluster.offers.daemons_on(launch.types[0], launch)])
        if (expected := amounts(stated)) != found:
            yield f"{pod}: {found} instead of {expected}"


def _requirements(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, raws in wanted.items():
        launch = _launch_of(cluster, pod)
        types = NodeRequirement.of(INSTANCE_TYPE, "In", [each.name for each in launch.types])
        own = {**launch.requirements, INSTANCE_TYPE: types}
        for key, each in requirements_of(raws).items():
            if key not in own or (own[key].operator, own[key].values) != (each.operator, each.values):
                yield f"{pod}: {key} is {own.get(key)}"


def _taint_count(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, number in wanted.items():
        yield from _number(len(cluster.of(pod).existing.taints), number)


def _unmet_labels(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    if cluster.unmet != {*wanted}:
        yield f"{sorted(cluster.unmet)} instead of {sorted(wanted)}"


def _new_types(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    found = sorted(node.labels[INSTANCE_TYPE] for node in cluster.new)
    if found != sorted(wanted):
        yield f"{found} instead of {sorted(wanted)}"


def _new_capacity_types(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    found = sorted(node.labels[CAPACITY_TYPE] for node in cluster.new)
    if found != sorted(wanted):
        yield f"{found} instead of {sorted(wanted)}"


def _other_capacity_types(cluster: _Provisioned, unwanted: Any) -> Iterator[str]:
    yield from (f"{kind} is not allowed" for node in cluster.new if (kind := node.labels[CAPACITY_TYPE]) in unwanted)


def _taints(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for pod, raws in wanted.items():
        own = cluster.of(pod).existing.taints
        yield from (f"{pod}: taint {raw} is missing" for raw in raws if parse_taint(raw) not in own)


def _domains(
    cluster: _Provisioned, key: str, labels: Mapping[str, str] | None = None, namespace: str | None = None
) -> list[int]:
    """Return how many pods with the labels each domain with any such pod holds, sorted."""
    counts = Counter[str]()
    for node in cluster.nodes.values():
        for pod in node.existing.pods:
            own = all(pod.labels.get(name) == text for name, text in (labels or {}).items())
            if own and namespace in (None, pod.namespace) and key in node.labels:
                counts[node.labels[key]] += 1
    return sorted(counts.values())


def _skew(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for each in wanted:
        found = _domains(cluster, each["topologyKey"], each.get("labels"), each.get("namespace"))
        if found != sorted(each["counts"]):
            yield f"{found} instead of {sorted(each['counts'])}"


def _most(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for key, number in wanted.items():
        if max(_domains(cluster, key), default=0) > number:
            yield f"{_domains(cluster, key)} instead of at most {number}"


def _largest_skew(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for key, number in wanted.items():
        found = _domains(cluster, key) or [0]
        if found[-1] - found[0] > number:
            yield f"{found}: the skew exceeds {number}"


def _label_values(cluster: _Provisioned, each: Raw) -> list[str | None]:
    return [cluster.of(pod).labels.get(each["key"]) for pod in each["pods"]]


def _same_label(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    yield from (f"{each}: values differ" for each in wanted if len({*_label_values(cluster, each)}) != 1)


def _different_label(cluster: _Provisioned, wanted: Any) -> Iterator[str]:
    for each in wanted:
        if len({*_label_values(cluster, each)}) != len(each["pods"]):
            yield f"{each}: values are equal"


_CHECKS: Final = {
    "skew": _skew,
    "maxPerDomain": _most,
    "maxSkew": _largest_skew,
    "sameLabel": _same_label,
    "differentLabel": _different_label,
    "scheduled": _scheduled,
    "unschedulable": _unschedulable,
    "counts": _counts,
    "newNodes": lambda cluster, wanted: _number(len(cluster.new), wanted),
    "nodes": lambda cluster, wanted: _number(len(cluster.nodes), wanted),
    "together": _together,
    "apart": _apart,
    "onNode": _on_node,
    "sameNodeAs": _same_node,
    "notSameNodeAs": _other_node,
    "nodeLabels": _labels,
    "nodeLabelsNot": _other_labels,
    "nodeLabelsPresent": _present,
    "nodeLabelsAbsent": _absent,
    "instanceType": _types,
    "allInstanceTypes": _all_types,
    "nodeCapacity": _capacity,
    "nodePool": _of_pool,
    "cheapest": _cheapest,
    "claimTypesAllHave": _types_have,
    "claimTypesFit": _types_fit,
    "minClaimInstanceTypes": _at_least_types,
    "claimInstanceTypes": _claim_types,
    "claimTerminationGracePeriod": _grace,
    "claimRequests": _requests,
    "claimRequirements": _requirements,
    "nodeTaints": _taints,
    "nodeTaintsCount": _taint_count,
    "minValuesFailed": _unmet_labels,
    "newNodeTypes": _new_types,
    "newNodeCapacityTypes": _new_capacity_types,
    "newNodeCapacityTypesNot": _other_capacity_types,
}
