"""The benchmark workloads: the same clusters and pods as in the recordings of kube-scheduler.

`workload(name, nodes)` returns the objects of one run, and measures nothing. Manifests are built on access (`Series`),
so 100,000 nodes and a million pods take only the memory of those that the caller stores.

The default sizes at 500, 5,000 and 15,000 nodes are those of the benchmark's description. In between and beyond:

    init pods   N; SchedulingPodAntiAffinity N/5; MixedSchedulingBasePod 2 N, made a multiple of five;
                PreemptionBasic 4 N; SchedulingDaemonset none from 15,000 nodes on
    measured    2 N, at most 2,000; SchedulingPodAntiAffinity 4/5 N, at most 2,000; PreemptionBasic N, at
                most 1,000; SchedulingDaemonset N from 15,000 nodes on; at most 1,000 with percentage 100 or
                an offered rate
    pending     Unschedulable 2/5 N, at most 2,000
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

import attrs

from kschedd.bench import heterogeneous, pod_templates
from kschedd.bench.pod_templates import MEASURED_NAMESPACE, SETUP_NAMESPACE, PodTemplate
from kschedd.bench.series import Raw, Series
from kschedd.errors import KscheddError

Mode = Literal["algo", "e2e"]
MODES: tuple[Mode, ...] = ("algo", "e2e")

_FIRST_START = 1704067200  # PreemptionBasic: start time of init-0, in seconds since the epoch
_MANY_NODES = 15_000


@attrs.define(eq=False)
class WorkloadError(KscheddError):
    """The error for parameters of a run that the workload does not allow."""

    workload: str
    field: str  # name of the parameter at fault
    value: object
    allowed: str

    def __str__(self) -> str:
        return f"workload {self.workload}: {self.field} {self.value!r}: {self.allowed}"


@attrs.frozen
class Workload:
    """The objects of one run: namespaces, nodes and init_pods are loaded, and then pods are measured in order.

    `pending` contains pods that fit on no node; they must be attempted and found unschedulable before the measurement
    starts. Only the workload Unschedulable has pods that fit on no node, and only in mode e2e (`measured_in`).
    """

    name: str
    namespaces: list[Raw]
    nodes: Series
    init_pods: Series
    pods: Series
    pending: Series

    def measured_in(self, mode: Mode) -> "Workload":
        """Return the workload for this mode: in mode algo, Unschedulable measures the pods that fit no node."""
        if self.name != "Unschedulable" or mode != "algo":
            return self
        return attrs.evolve(self, pods=_too_big(len(self.pods)), pending=_too_big(0))


@attrs.frozen
class _Recipe:
    """The differences of a workload from the workload SchedulingBasic."""

    zones: tuple[str, ...] = ()  # zones, assigned to the nodes in turn
    taints: tuple[tuple[Raw, ...], ...] = ((),)  # lists of taints, assigned to the nodes in turn
    init: tuple[PodTemplate, ...] = (pod_templates.DEFAULT,)  # templates of the init pods, in equal blocks
    init_namespace: str = SETUP_NAMESPACE
    measured: tuple[PodTemplate, ...] = (pod_templates.DEFAULT,)  # templates of the measured pods, assigned in turn


_ONE_ZONE = ("zone1",)
_MOONS = ("moon-1", "moon-2", "moon-3")
_DEDICATED = pod_templates.taint("dedicated", "special", "NoSchedule")
_MAINTENANCE = pod_templates.taint("maintenance", "soon", "PreferNoSchedule")


def _all(template: PodTemplate, zones: tuple[str, ...] = ()) -> _Recipe:
    return _Recipe(zones=zones, init=(template,), measured=(template,))


_RECIPES: dict[str, _Recipe] = {
    "SchedulingBasic": _Recipe(),
    "SchedulingNodeAffinity": _all(pod_templates.NODE_AFFINITY, _ONE_ZONE),
    "TopologySpreading": _Recipe(
        zones=_MOONS, init_namespace=MEASURED_NAMESPACE, measured=(pod_templates.SPREAD_HARD,)
    ),
    "PreferredTopologySpreading": _Recipe(
        zones=_MOONS, init_namespace=MEASURED_NAMESPACE, measured=(pod_templates.SPREAD_SOFT,)
    ),
    "SchedulingPodAntiAffinity": _all(pod_templates.POD_ANTI_AFFINITY),
    "SchedulingPodAffinity": _all(pod_templates.POD_AFFINITY, _ONE_ZONE),
    "SchedulingPreferredPodAffinity": _all(pod_templates.PREF_POD_AFFINITY),
    "SchedulingPreferredPodAntiAffinity": _all(pod_templates.PREF_POD_ANTI_AFFINITY),
    "MixedSchedulingBasePod": _Recipe(
        zones=_ONE_ZONE,
        init=(
            pod_templates.DEFAULT,
            pod_templates.POD_AFFINITY,
            pod_templates.POD_ANTI_AFFINITY,
            pod_templates.PREF_POD_AFFINITY,
            pod_templates.PREF_POD_ANTI_AFFINITY,
        ),
    ),
    "PreemptionBasic": _Recipe(init=(pod_templates.VICTIM,), measured=(pod_templates.PREEMPTOR,)),
    "Unschedulable": _Recipe(),
    "SchedulingTaints": _Recipe(
        taints=((_DEDICATED,), (_MAINTENANCE,), (), (), ()), measured=(pod_templates.TOLERANT, pod_templates.DEFAULT)
    ),
    "SchedulingDaemonset": _Recipe(),
    "Heterogeneous": _Recipe(),
}

WORKLOADS: tuple[str, ...] = tuple(_RECIPES)
"""Every workload, in the order of the description."""


@attrs.frozen
class Sizes:
    """The number of pods in each role of a run."""

    init_pods: int
    pods: int
    pending: int


def default_sizes(name: str, nodes: int, percentage: int = 0, offered_rate: float = 0) -> Sizes:
    """Return the sizes of kube-scheduler's recordings.

    For other numbers of nodes, return those that the module defines.
    """
    many = nodes >= _MANY_NODES
    init_pods, pods = nodes, min(2 * nodes, 2000)
    if name == "SchedulingPodAntiAffinity":
        init_pods, pods = nodes // 5, min(4 * nodes // 5, 2000)
    elif name == "MixedSchedulingBasePod":
        init_pods = 2 * nodes // 5 * 5
    elif name == "PreemptionBasic":
        init_pods, pods = 4 * nodes, min(nodes, 1000)
    elif name == "SchedulingDaemonset" and many:
        init_pods, pods = 0, nodes
    if percentage == 100 or offered_rate:
        pods = min(pods, 1000)
    return Sizes(init_pods, pods, min(2 * nodes // 5, 2000) if name == "Unschedulable" else 0)


def workload(
    name: str,
    nodes: int,
    init_pods: int | None = None,
    pods: int | None = None,
    pending: int | None = None,
) -> Workload:
    """Return the objects of one run. Sizes that are None are taken from `default_sizes`. Raises WorkloadError."""
    if name not in _RECIPES:
        raise WorkloadError(name, "name", name, f"one of {', '.join(WORKLOADS)}")
    if nodes < 1:
        raise WorkloadError(name, "nodes", nodes, "at least 1")
    default = default_sizes(name, nodes)
    sizes = Sizes(
        default.init_pods if init_pods is None else init_pods,
        default.pods if pods is None else pods,
        default.pending if pending is None else pending,
    )
    _check(name, nodes, sizes)
    node_names = [f"node-{i}" for i in range(nodes)]
    if name == "Heterogeneous":
        return Workload(
            name=name,
            namespaces=[pod_templates.namespace(heterogeneous.NAMESPACE)],
            nodes=heterogeneous.nodes(nodes),
            init_pods=heterogeneous.init_pods(sizes.init_pods, node_names),
            pods=heterogeneous.measured_pods(sizes.pods),
            pending=_too_big(0),
        )
    recipe = _RECIPES[name]
    return Workload(
        name=name,
        namespaces=[pod_templates.namespace(SETUP_NAMESPACE), pod_templates.namespace(MEASURED_NAMESPACE)],
        nodes=_nodes(recipe, node_names),
        init_pods=_init_pods(recipe, node_names, sizes.init_pods, _started if name == "PreemptionBasic" else None),
        pods=_daemons(node_names, sizes.pods) if name == "SchedulingDaemonset" else _measured(recipe, sizes.pods),
        pending=_too_big(sizes.pending),
    )


def _check(name: str, nodes: int, sizes: Sizes) -> None:
    for field, value in attrs.asdict(sizes).items():
        if value < 0:
            raise WorkloadError(name, field, value, "at least 0")
    if sizes.pending and name != "Unschedulable":
        raise WorkloadError(name, "pending", sizes.pending, "0: only Unschedulable has pending pods")
    if name == "SchedulingPodAntiAffinity" and sizes.init_pods + sizes.pods > nodes:
        why = f"at most {nodes} with the init pods: each of them needs a node of its own"
        raise WorkloadError(name, "pods", sizes.pods, why)
    if name == "MixedSchedulingBasePod" and sizes.init_pods % 5:
        raise WorkloadError(name, "init_pods", sizes.init_pods, "a multiple of 5: five blocks of equal size")
    if name == "PreemptionBasic" and sizes.init_pods != 4 * nodes:
        raise WorkloadError(name, "init_pods", sizes.init_pods, f"{4 * nodes}: four on every node")
    if name == "PreemptionBasic" and sizes.pods > nodes:
        raise WorkloadError(name, "pods", sizes.pods, f"at most {nodes}: a node can make room for one pod")


def _nodes(recipe: _Recipe, names: list[str]) -> Series:
    zone_labels = [{pod_templates.ZONE: zone} for zone in recipe.zones] or [{}]
    taints = [list(group) for group in recipe.taints]

    def at(i: int) -> Raw:
        labels, tainted = zone_labels[i % len(zone_labels)], taints[i % len(taints)]
        return pod_templates.node(names[i], labels, pod_templates.STANDARD_STATUS, tainted)

    return Series(len(names), at)


def _init_pods(recipe: _Recipe, node_names: list[str], count: int, status: Callable[[int], Raw] | None) -> Series:
    blocks = recipe.init

    def at(i: int) -> Raw:
        return pod_templates.bound(
            f"init-{i}",
            recipe.init_namespace,
            blocks[i * len(blocks) // count],
            node_names[i % len(node_names)],
            status(i) if status else pod_templates.RUNNING,
        )

    return Series(count, at)


def _started(i: int) -> Raw:
    start = datetime.fromtimestamp(_FIRST_START + i, UTC)
    return {**pod_templates.RUNNING, "startTime": start.strftime("%Y-%m-%dT%H:%M:%SZ")}


def _measured(recipe: _Recipe, count: int) -> Series:
    turns = recipe.measured
    return Series(count, lambda i: pod_templates.pod(f"pod-{i}", MEASURED_NAMESPACE, turns[i % len(turns)]))


def _daemons(node_names: list[str], count: int) -> Series:
    def at(i: int) -> Raw:
        return pod_templates.pod(f"pod-{i}", MEASURED_NAMESPACE, pod_templates.daemon(node_names[i % len(node_names)]))

    return Series(count, at)


def _too_big(count: int) -> Series:
    return Series(count, lambda i: pod_templates.pod(f"big-{i}", MEASURED_NAMESPACE, pod_templates.TOO_BIG))
