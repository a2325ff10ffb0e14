"""The Heterogeneous workload: nodes and pods with randomly drawn, mostly different properties.

All values are drawn from a 64-bit linear congruential generator, with one stream for the nodes, one for the init pods
and one for the measured pods. Every object of a stream requires the same number of draws. Object i therefore starts at
a known offset of its stream and can be built without the objects before it.

Source: the benchmark's description, section 3; a test verifies the checksums over the draws.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from kschedd.bench.pod_templates import (
    HOSTNAME,
    ZONE,
    PodTemplate,
    affinity_term,
    bound,
    capacity,
    node,
    pod,
    preferred,
    required,
    resources,
    spec,
    spread,
    taint,
)
from kschedd.bench.series import Raw, Series

NAMESPACE = "default"
NODE_SEED, INIT_SEED, POD_SEED = 1, 2, 3

_MULTIPLIER = 6364136223846793005
_INCREMENT = 1442695040888963407
_MASK = (1 << 64) - 1

_ZONES = ("zone-a", "zone-b", "zone-c")
_DISKS = ("ssd", "hdd", "nvme")
_NODE_STATUS = (capacity("4", "16Gi"), capacity("8", "32Gi"), capacity("16", "64Gi"), capacity("32", "128Gi"))
_NODE_TAINTS = {
    0: [taint("dedicated", "batch", "NoSchedule")],
    1: [taint("dedicated", "gpu", "NoSchedule")],
    2: [taint("spot", "true", "PreferNoSchedule")],
}
_TOLERATE_BATCH: list[Raw] = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
_TOLERATE_DEDICATED: list[Raw] = [{"key": "dedicated", "operator": "Exists"}]
_TOLERATE_SPOT: list[Raw] = [{"key": "spot", "operator": "Equal", "value": "true", "effect": "PreferNoSchedule"}]


class Generator:
    """One stream of draws, which begins after `skip` draws."""

    def __init__(self, seed: int, skip: int = 0) -> None:
        self._state = _after(seed, skip) if skip else seed

    def rnd(self, n: int) -> int:
        """Return the next draw, in 0..n-1."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return (self._state >> 33) % n


def _after(state: int, steps: int) -> int:
    """Return the state `steps` draws later, by repeated squaring of the step s -> a*s + c."""
    a, c = _MULTIPLIER, _INCREMENT
    while steps:
        if steps & 1:
            state = (a * state + c) & _MASK
        c = (a * c + c) & _MASK
        a = (a * a) & _MASK
        steps >>= 1
    return state


class NodeDraw(NamedTuple):
    sz: int
    z: int
    d: int
    t: int


class PodDraw(NamedTuple):
    cpu: int  # millicores
    mem: int  # Mi
    k: int
    za: int
    zi: int
    da: int
    di: int
    tl: int
    sp: int
    pa: int
    wt: int
    na: int
    nw: int


def draw_node(generator: Generator) -> NodeDraw:
    rnd = generator.rnd
    return NodeDraw(rnd(4), rnd(3), rnd(3), rnd(10))


def draw_pod(generator: Generator) -> PodDraw:
    rnd = generator.rnd
    return PodDraw(
        cpu=50 + 10 * rnd(96),
        mem=64 + 16 * rnd(125),
        k=rnd(10),
        za=rnd(100),
        zi=rnd(3),
        da=rnd(100),
        di=rnd(3),
        tl=rnd(100),
        sp=rnd(100),
        pa=rnd(100),
        wt=1 + rnd(100),
        na=rnd(100),
        nw=1 + rnd(100),
    )


def nodes(count: int) -> Series:
    """Return node-0 to node-<count-1>."""

    def at(i: int) -> Raw:
        return _node(i, draw_node(Generator(NODE_SEED, i * len(NodeDraw._fields))))

    def walk() -> Iterator[Raw]:
        generator = Generator(NODE_SEED)
        return (_node(i, draw_node(generator)) for i in range(count))

    return Series(count, at, walk)


def init_pods(count: int, node_names: list[str]) -> Series:
    """Return `count` init pods, with pod number i bound to node number i mod N."""

    def make(i: int, draw: PodDraw) -> Raw:
        return bound(f"init-{i}", NAMESPACE, _shape(draw), node_names[i % len(node_names)])

    return _pods(count, INIT_SEED, make)


def measured_pods(count: int) -> Series:
    """Return pod-0 to pod-<count-1>."""
    return _pods(count, POD_SEED, lambda i, draw: pod(f"pod-{i}", NAMESPACE, _shape(draw)))


def _pods(count: int, seed: int, make: Callable[[int, PodDraw], Raw]) -> Series:
    def at(i: int) -> Raw:
        return make(i, draw_pod(Generator(seed, i * len(PodDraw._fields))))

    def walk() -> Iterator[Raw]:
        generator = Generator(seed)
        return (make(i, draw_pod(generator)) for i in range(count))

    return Series(count, at, walk)


def _node(i: int, draw: NodeDraw) -> Raw:
    labels = {ZONE: _ZONES[draw.z], "disktype": _DISKS[draw.d], "size": f"s{draw.sz}"}
    return node(f"node-{i}", labels, _NODE_STATUS[draw.sz], _NODE_TAINTS.get(draw.t, ()))


def _shape(draw: PodDraw) -> PodTemplate:
    more: Raw = {}
    if selector := _node_selector(draw):
        more["nodeSelector"] = selector
    if draw.tl < 40:
        more["tolerations"] = (
            _TOLERATE_BATCH if draw.tl < 20 else _TOLERATE_DEDICATED if draw.tl < 30 else _TOLERATE_SPOT
        )
    if draw.sp < 50:
        more["topologySpreadConstraints"] = _constraints(draw.k, draw.sp)
    affinity = _pod_affinity(draw)
    if draw.na < 20:
        affinity = {**affinity, "nodeAffinity": _disk_preference(draw.nw)}
    if affinity:
        more["affinity"] = affinity
    return PodTemplate(_app(draw.k), {**_plain_spec(draw.cpu, draw.mem), **more})


def _node_selector(draw: PodDraw) -> Raw:
    selector: Raw = {}
    if draw.za < 30:
        selector[ZONE] = _ZONES[draw.zi]
    if draw.da < 30:
        selector["disktype"] = _DISKS[draw.di]
    return selector


def _constraints(k: int, sp: int) -> list[Raw]:
    if sp >= 40:
        return [_spread(5, ZONE, "DoNotSchedule", k)]
    if sp >= 20:
        return [_spread(1, ZONE, "ScheduleAnyway", k)]
    return [_spread(1, ZONE, "ScheduleAnyway", k), _spread(2, HOSTNAME, "ScheduleAnyway", k)]


def _pod_affinity(draw: PodDraw) -> Raw:
    if draw.pa < 30:
        return preferred("podAntiAffinity", draw.wt, _term(draw.k, HOSTNAME))
    if draw.pa < 40:
        return preferred("podAffinity", draw.wt, _term((draw.k + 1) % 10, ZONE))
    if draw.pa < 43:
        return required("podAntiAffinity", _term(draw.k, HOSTNAME))
    return {}


# The functions below have few distinct results, so each result is cached and shared by all pods that use it.
@cache
def _app(k: int) -> Raw:
    return {"app": f"app-{k}"}


@cache
def _plain_spec(cpu_milli: int, memory_mib: int) -> Raw:
    return spec(resources(f"{cpu_milli}m", f"{memory_mib}Mi"))


@cache
def _spread(max_skew: int, key: str, when: str, k: int) -> Raw:
    return spread(max_skew, key, when, _app(k))


@cache
def _term(k: int, key: str) -> Raw:
    return affinity_term(_app(k), key)


@cache
def _disk_preference(weight: int) -> Raw:
    expression = {"key": "disktype", "operator": "In", "values": ["ssd", "nvme"]}
    preference = {"weight": weight, "preference": {"matchExpressions": [expression]}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}
