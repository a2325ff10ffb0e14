"""Methods that compute the number of pods that fit, or compare configurations. Each method works on its own forks."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from kschedd.answers import plain
from kschedd.api.amounts import amount
from kschedd.api.pods import Pod
from kschedd.clusters.answers import (
    AlternativeAnswer,
    FitsAnswer,
    NeededAnswer,
    NeededShape,
    ObjectName,
    ShapeAnswer,
    UnplacedAnswer,
)
from kschedd.clusters.pool_methods import POOLS, pool_files, pooled_cluster
from kschedd.clusters.virtual import MethodsOf, VirtualCluster, VirtualDaemon
from kschedd.config.changing.changes import with_weights
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import KubernetesVersion, kube_version
from kschedd.pools.decisions.shapes import launch_shapes
from kschedd.pools.reading import Pools, read_pools
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.inputs import Reconfigure
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.config import whole_config
from kschedd.service.errors import RpcError
from kschedd.service.objects.applying import parse
from kschedd.service.objects.kinds import find_kind
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method
from kschedd.service.workers import GivenUp
from kschedd.simulation.comparing.capacity import (
    FitCount,
    fit_count,
    pod_of,
    scaled,
    sized_by,
)
from kschedd.simulation.comparing.comparison import (
    Decide,
    PlacementComparison,
    PodOutcomes,
    ReadDecision,
    compare_configs,
    pod_outcome,
)
from kschedd.simulation.comparing.needed_nodes import MOST_NODES, NodeShape, nodes_needed, uids_of
from kschedd.simulation.comparing.running_pods import judge_running, running_pods
from kschedd.simulation.comparing.upgrade import Judge, compare_versions
from kschedd.simulation.engine import Engine
from kschedd.values import as_map

T = TypeVar("T")

_MOST_PODS: Final = 100_000
_REST_S: Final = 3_600.0
_PRESENT: Final = "present configuration"
_MANIFESTS: Final = "YAML or JSON text, an object, or an array of objects"


def _two_sides(
    present: Config, given: Sequence[Config], names: Sequence[str], weights: Mapping[str, Any]
) -> tuple[list[Config], list[str]]:
    """Return the two configurations to compare, and their names. Raises ConfigErrors for wrong weights.

    If only one configuration is given, it is compared with the present configuration.
    """
    sides, named = list(given), list(names)
    if len(sides) + bool(weights) == 1:
        sides, named = [present, *sides], [_PRESENT, *named]
    if weights:
        sides.append(with_weights(sides[0], weights))
        named.append(", ".join(f"weight {plugin} {weight}" for plugin, weight in weights.items()))
    return sides, named


@attrs.frozen(eq=False)
class CapacityMethods(Methods):
    """Methods for capacity questions. `methods` are the methods that a fork serves."""

    _cluster: ClusterBackend
    _methods: MethodsOf

    @method(
        "capacity.compare",
        (
            Param("configs", "string[]", False, [], "the texts of two configurations; one: compared with the present"),
            Param("names", "string[]", False, [], "the names of these configurations in messages"),
            Param("weights", "map", False, {}, "instead of the last of `configs`: changed weights of score plugins"),
            Param("manifests", "string|map|map[]", False, "", "the workload; empty: all pods of the cluster"),
            Param("versions", "string[]", False, [], "instead of `configs`: two Kubernetes versions, such as 1.36"),
        ),
        reads=True,
        doc="Compares two configurations, or two Kubernetes versions. A single configuration, and changed weights, are "
        "compared with the present configuration. A workload is created on two forks of the "
        "cluster with the same random numbers. Without a workload, each pod of the cluster is scheduled "
        "independently, as if it were pending now. Nothing is changed.",
        answer=PlacementComparison,
    )
    async def compare(self, call: Call) -> Any:
        configs, versions, weights = call["configs"], call["versions"], call["weights"]
        sides = len(configs) + bool(weights)
        if len(versions) != (0 if sides else 2) or sides > 2:
            raise RpcError("invalid", "one or two configs, weights, or two versions are required")
        names = call["names"] or [f"configs[{number}]" for number in range(len(configs))]
        if len(names) != len(configs):
            raise RpcError("invalid", "names: one is required for each of configs")
        pair = [kube_version(version) for version in versions]
        snapshot = await self._cluster.snapshot()
        snapshot.store.keep_jobs_running()

        def work(given_up: GivenUp) -> PlacementComparison:
            base = VirtualCluster(resumed=snapshot).engine
            try:
                decide: Decide[Config] = (
                    _OfWorkload(base, self._apply, call["manifests"], given_up)
                    if call["manifests"]
                    else _OfCluster(base, given_up)
                )
                if versions:
                    return compare_versions(_by_version(decide, base), *pair)
                read = [whole_config(base.driver, text, name) for text, name in zip(configs, names, strict=True)]
                return compare_configs(decide, *_two_sides(base.machine.config, read, names, weights))
            finally:
                base.close()

        return await call.services.workers.run(call.client, work)

    def _apply(self, cluster: VirtualCluster, manifests: Any) -> None:
        """Apply the workload, and run the cluster until it is idle."""
        call = VirtualDaemon(cluster, self._methods).call
        applied = call("objects.apply", manifests=manifests, source="-f")
        for fault in applied["errors"]:
            raise RpcError(str(fault["code"]), str(fault["message"]), fault)
        cluster.engine.run_to_rest(_REST_S)

    @method(
        "capacity.pods",
        (
            Param("manifests", "string|map|map[]", False, "", f"pods, or workloads that create pods: {_MANIFESTS}"),
            Param(
                "workload",
                "map",
                False,
                doc="instead of `manifests`: `{kind, name, namespace}`, counted as if it had no pods yet",
            ),
            Param("alternatives", "boolean", False, False, "also count pods of half the size, of double the size ..."),
            Param("limit", "integer", False, 10000, "maximum count", (), 1, _MOST_PODS),
            Param("together", "boolean", False, False, "count sets that contain one pod of each spec"),
            Param("shapes", "map[]", False, [], "node shapes; one node of each is tried: `{manifest, name?, price?}`"),
        ),
        reads=True,
        doc="Counts how many more pods of each spec fit into the present cluster, separately or all specs together: "
        "pods are scheduled one after the other on a copy, without preemption. Nothing is changed.",
        returns="an item per spec, or a single item for all together",
        answer=Sequence[FitsAnswer],
    )
    async def pods(self, call: Call) -> Any:
        snapshot = await self._cluster.snapshot()
        snapshot.store.keep_jobs_running()

        shapes = _shapes(call["shapes"])

        def count(given_up: GivenUp) -> list[FitsAnswer]:
            cluster = VirtualCluster(resumed=snapshot)
            try:
                engine = cluster.engine
                wanted = [_without_pods(engine, call["workload"])] if call["workload"] else _wanted(call["manifests"])
                sets = [wanted] if call["together"] else [[raw] for raw in wanted]
                found = [_fits(engine, raws, call["limit"], given_up) for raws in sets]
                more: list[list[ShapeAnswer]] = [[] for _ in sets]
                for shape in shapes:
                    larger = _with_one(engine, shape)
                    try:
                        for raws, before, answers in zip(sets, found, more, strict=True):
                            after = _fits(larger, raws, call["limit"], given_up)
                            many = after.count - before.count if after.why and before.why else None
                            answers.append(ShapeAnswer(shape.name, shape.price, many))
                    finally:
                        larger.close()
                found_answers = [_fits_answer(*each) for each in zip(sets, found, more, strict=True)]
                if not call["alternatives"]:
                    return found_answers
                return [
                    _with_alternatives(engine, raws, each, call["limit"], given_up)
                    for raws, each in zip(sets, found_answers, strict=True)
                ]
            finally:
                cluster.engine.close()

        return await call.services.workers.run(call.client, count)

    @method(
        "capacity.nodes",
        (
            Param("manifests", "string|map|map[]", doc="the workload that must fit; empty: the pending pods"),
            Param("shapes", "map[]", False, [], "node shapes: `{manifest, name?, price?}`"),
            attrs.evolve(POOLS, required=False, default=[]),
            Param("limit", "integer", False, 512, "maximum number of nodes of each shape", (), 1, MOST_NODES),
        ),
        reads=True,
        doc="Computes how many more nodes of these shapes are needed to schedule all pods of the manifests, on forks "
        "with all controllers. The shapes are those given and those that node pools can launch within their limits. "
        "The result is the cheapest set of nodes (`exact`), or a set from which no node can be removed, with a lower "
        "`bound` of the price. Nothing is changed.",
        answer=NeededAnswer,
    )
    async def nodes(self, call: Call) -> Any:
        if not call["shapes"] and not call["pools"]:
            raise RpcError("invalid", "shapes: at least one shape or file with node pools is required")
        shapes = _shapes(call["shapes"])
        pools = read_pools(pool_files(call["pools"])) if call["pools"] else None
        snapshot = await self._cluster.snapshot()
        snapshot.store.keep_jobs_running()
        return await call.services.workers.run(
            call.client,
            lambda given_up: self._needed(snapshot, call["manifests"], shapes, pools, call["limit"], given_up),
        )

    def _needed(
        self,
        snapshot: ClusterSnapshot,
        manifests: Any,
        shapes: list[NodeShape],
        pools: Pools | None,
        limit: int,
        given_up: GivenUp,
    ) -> NeededAnswer:
        cluster = VirtualCluster(resumed=snapshot)
        try:
            daemon, wanted = VirtualDaemon(cluster, self._methods), set[str]()
            if manifests:
                applied = daemon.call("objects.apply", manifests=manifests)
                for fault in applied["errors"]:
                    raise RpcError(str(fault["code"]), str(fault["message"]), fault)
                cluster.engine.run_to_rest(_REST_S)
                wanted = uids_of(cluster.engine, applied["results"])
            else:
                cluster.engine.run_to_rest(_REST_S)
            launches: list[NeededShape] = []
            limits: Mapping[str, float] = {}
            if pools is not None:
                offered, launches, limits = _offered(cluster.engine, pools)
                shapes = [*shapes, *offered]
            found = nodes_needed(cluster.engine, wanted, shapes, limit, given_up.check, limits)
        finally:
            cluster.engine.close()
        answers = {shape.name: NeededShape(shape.name, 0, shape.price) for shape in shapes}
        answers |= {each.name: each for each in launches}
        named = {each.name for each in launches}
        return NeededAnswer(
            [
                attrs.evolve(answers[name], count=count)
                for name, count in found.counts.items()
                if count or name not in named
            ],
            found.price,
            found.trials,
            found.exact,
            found.bound,
            [UnplacedAnswer(pod, why) for pod, why in found.unplaced],
        )


def _offered(engine: Engine, pools: Pools) -> tuple[list[NodeShape], list[NeededShape], Mapping[str, float]]:
    """Return the nodes that the pools can launch for the pods of the cluster, and the limits that the nodes share."""
    pods = [pod for pod in engine.store.list("Pod") if isinstance(pod, Pod)]
    offered = launch_shapes(pooled_cluster(engine), pools, pods)
    unpriced = sorted({each.launch.pool for each in offered.shapes if each.launch.price is None})
    if unpriced and len(unpriced) < len(pools.names):
        raise RpcError(
            "invalid", f'pools: "{unpriced[0]}" has no price: give all pools a price, or none (each node: 1)'
        )
    shapes, answers = [], []
    for number, each in enumerate(offered.shapes, 1):
        launch = each.launch
        price = 1.0 if launch.price is None else launch.price
        name = f"{launch.pool}-{number}"
        shapes.append(NodeShape(name, launch.raw, price, each.usage))
        answers.append(NeededShape(name, 0, price, launch.pool, launch.type, launch.zone, launch.capacity_type))
    return shapes, answers, offered.limits


def _by_version(decide: Decide[Config], base: Engine) -> Judge:
    """Return a function that schedules with the present configuration and the rules of a version."""
    config = base.machine.config

    def judge(version: KubernetesVersion, keys: Collection[str] | None) -> PodOutcomes:
        try:
            return decide(base.config_by(config, version), keys, pod_outcome)
        except RpcError as refusal:
            raise RpcError(refusal.code, f"by {version.name}: {refusal.message}", refusal.data) from refusal

    return judge


@attrs.frozen(eq=False)
class _OfWorkload:
    """Decisions about the pods of a workload that is created on a fork of the cluster."""

    _base: Engine
    _apply: Callable[[VirtualCluster, Any], None]
    _manifests: Any
    _given_up: GivenUp

    def __call__(self, side: Config, keys: Collection[str] | None, read: ReadDecision[T]) -> dict[str, T]:
        found: dict[str, T] = {}

        def note(entry: QueuedPod, result: ScheduleResult | FitError) -> None:
            self._given_up.check()
            found[entry.key] = read(cluster.engine.machine, entry.pod, result)

        cluster = VirtualCluster(resumed=self._base.snapshot(), on_result=note)
        try:
            cluster.engine.driver.step(Reconfigure(side))
            cluster.engine.store.stand_for(side.rules)  # the store then accepts the fields of that version
            self._apply(cluster, self._manifests)
        finally:
            cluster.engine.close()
        return found


class _OfCluster:
    """Decisions about the pods of the cluster, one pod at a time."""

    def __init__(self, engine: Engine, given_up: GivenUp) -> None:
        engine.machine.choose = by_name
        self._engine = engine
        self._given_up = given_up
        self._listed = [pod for pod in engine.store.list("Pod") if isinstance(pod, Pod)]
        self._running = running_pods(self._listed)

    def __call__(self, side: Config, keys: Collection[str] | None, read: ReadDecision[T]) -> dict[str, T]:
        self._engine.driver.step(Reconfigure(side))
        pods = self._running if keys is None else [each for each in self._running if each.pod.key in keys]
        found = judge_running(self._engine.machine, pods, read, self._given_up.check)
        return {pod.key: found[pod.key] for pod in self._listed if pod.key in found}


def _wanted(manifests: Any) -> list[dict[str, Any]]:
    parsed = parse(manifests, "-")
    for fault in parsed.errors:
        raise RpcError("invalid", fault.message, plain(fault))
    if not parsed.wanted:
        raise RpcError("invalid", "manifests: there is none")
    return [wanted.raw for wanted in parsed.wanted]


def _fits(engine: Engine, raws: Sequence[dict[str, Any]], limit: int, given_up: GivenUp) -> FitCount:
    """Return the number of additional sets of these pods that fit."""
    return fit_count(engine.machine, [_pod(engine, raw) for raw in raws], limit, engine.now, given_up.check)


def _pod(engine: Engine, raw: dict[str, Any]) -> Pod:
    """Return the pod that a manifest contains or creates, as the API server would store it."""
    template = dict(pod_of(raw))
    own = dict(as_map(template.get("metadata")))
    own["generateName"] = own.pop("generateName", "") or f"{own.pop('name', 'pod')}-"
    own.pop("name", None)
    pod = engine.store.create({**template, "metadata": own}, dry_run=True)
    assert isinstance(pod, Pod), "a pod is expected"
    if not engine.machine.responsible(pod.scheduler_name):
        profiles = ", ".join(sorted(engine.machine.schedulers))
        raise RpcError("invalid", f'no profile has the schedulerName "{pod.scheduler_name}" (profiles: {profiles})')
    return pod


def _fits_answer(raws: Sequence[dict[str, Any]], found: FitCount, shapes: Sequence[ShapeAnswer]) -> FitsAnswer:
    specs = []
    for raw in raws:
        meta = as_map(raw.get("metadata"))
        name = str(meta.get("name") or meta.get("generateName") or "")
        specs.append(ObjectName(str(raw.get("kind")), str(meta.get("namespace") or "default"), name))
    lacking = found.lacking if found.why else None
    return FitsAnswer(specs, found.count, found.nodes, not found.why, found.why, lacking, shapes)


def _without_pods(engine: Engine, named: Mapping[str, Any]) -> dict[str, Any]:
    """Remove a workload's pods from their nodes; return the workload's manifest. Raises RpcError and NotFound."""
    kind, name = find_kind(engine.store, str(named.get("kind"))), str(named.get("name"))
    obj = engine.store.get(kind.name, str(named.get("namespace") or "default"), name)
    cluster = engine.machine.cluster
    for uid in uids_of(engine, [{"kind": kind.name, "namespace": obj.namespace, "name": name}]):
        known = cluster.pod(uid)
        if known is not None:
            cluster.remove_pod(known)
    own = {"name": name, "namespace": obj.namespace}
    spec = {field: given for field, given in obj.spec.items() if field != "nodeName"}
    return {**obj.raw, "metadata": {**own, "labels": dict(obj.labels)}, "spec": spec}


def _with_alternatives(
    engine: Engine, raws: Sequence[dict[str, Any]], answers: FitsAnswer, limit: int, given_up: GivenUp
) -> FitsAnswer:
    """Return the answer with the numbers of pods that would fit if the pods had other sizes.

    Sets of several pods have no other sizes.
    """
    pod = _pod(engine, raws[0])
    resource = sized_by(pod) if len(raws) == 1 else ""
    if not resource:
        return answers
    largest = max(
        (n.allocatable.get(resource, 0) for n in engine.machine.cluster.table.nodes if n is not None), default=0
    )
    found = []
    for other in scaled(pod, largest):
        fits = fit_count(engine.machine, [other.pod], limit, engine.now, given_up.check)
        if fits.count:
            found.append(AlternativeAnswer(amount(resource, other.amount), fits.count, not fits.why))
    return attrs.evolve(answers, resource=resource, amount=amount(resource, pod.requests[resource]), alternatives=found)


def _with_one(engine: Engine, shape: NodeShape) -> Engine:
    """Return a fork with one more node of that shape, after running it until idle.

    DaemonSets and pending pods may already use the new node.
    """
    larger = Engine(resumed=engine.snapshot())
    for raw in shape.nodes(1):
        larger.store.create(raw)
    larger.run_to_rest(_REST_S)
    return larger


def _shapes(given: Sequence[Any]) -> list[NodeShape]:
    shapes = [_shape(number, each) for number, each in enumerate(given, 1)]
    if len({shape.name for shape in shapes}) < len(shapes):
        raise RpcError("invalid", "shapes: two shapes have the same name")
    return shapes


def _shape(number: int, given: Any) -> NodeShape:
    raw = given.get("manifest")
    if not isinstance(raw, dict) or raw.get("kind") != "Node":
        raise RpcError("invalid", f"shapes[{number - 1}].manifest: a Node is expected")
    price = given.get("price", 1.0)
    if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < float("inf"):
        raise RpcError("invalid", f"shapes[{number - 1}].price: a number from 0 up is expected")
    name = str(given.get("name") or (raw.get("metadata") or {}).get("name") or f"shape-{number}")
    return NodeShape(name, raw, float(price))
