"""A synthetic workload: pods arrive on identical nodes at random times, run and end.

Arrivals follow a Poisson process, or have Weibull-distributed intervals of shape `arrival_shape`. Lifetimes have an
exponential distribution, or a lognormal one with `lifetime_sigma`. The seed determines arrivals and lifetimes, so a run
can be repeated. Pods are created at their arrival and dropped at their end, so the memory use depends on the number of
running pods, not on the total.

    pods      cpu=500m,memory=1Gi,weight=3,priority=100     requests and relative frequency of a kind of pod
    nodes     cpu=32,memory=128Gi,pods=110,zones=3          capacity of a node, and the number of zones

Units: seconds of virtual time.
"""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate
from math import gamma, log
from random import Random
from typing import Any, Final

import attrs

from kschedd.api.nodes import HOSTNAME_LABEL, ZONE_LABEL
from kschedd.api.quantity import QuantityError, parse
from kschedd.api.text.numbers import whole_number
from kschedd.errors import KscheddError
from kschedd.simulation.workloads.trace import TraceEvent, priority_class, priority_name

Raw = dict[str, Any]

NAMESPACE: Final = "default"
POD_SHAPES: Final = ("cpu=250m,memory=512Mi,weight=6", "cpu=1,memory=2Gi,weight=3", "cpu=4,memory=8Gi")
NODE_SHAPE: Final = "cpu=32,memory=128Gi,pods=110,zones=3"
_PLAIN: Final = frozenset(("cpu", "memory", "ephemeral-storage"))  # all other resources also require a limit
_MOST: Final = 1_000_000_000  # highest priority that users may assign


@attrs.define(eq=False)
class GeneratedWorkloadError(KscheddError):
    """The error for an invalid shape or number."""

    flag: str
    text: str
    why: str

    def __str__(self) -> str:
        return f"{self.flag} {self.text}: {self.why}"


@attrs.frozen
class GeneratedPods:
    """One kind of pod. A group of generated pods that share a spec and labels."""

    name: str
    weight: int
    priority: int
    spec: Raw
    _labels: Raw = attrs.field(init=False)

    @_labels.default
    def _kind(self) -> Raw:
        return {"kind": self.name}

    @classmethod
    def parse(cls, flag: str, text: str, number: int) -> "GeneratedPods":
        """Parse `RESOURCE=QUANTITY,...,weight=N,priority=N`. Raises GeneratedWorkloadError."""
        resources, numbers = _parsed(flag, text, {"weight": 1, "priority": 0})
        limits = {name: amount for name, amount in resources.items() if name not in _PLAIN}
        requirements: Raw = {"requests": resources, **({"limits": limits} if limits else {})}
        spec: Raw = {
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": requirements}],
            "terminationGracePeriodSeconds": 0,
        }
        if numbers["priority"]:
            spec["priorityClassName"] = priority_name(numbers["priority"])
        return cls(f"kind-{number}", numbers["weight"], numbers["priority"], spec)

    def manifest(self, name: str) -> Raw:
        meta = {"name": name, "namespace": NAMESPACE, "labels": self._labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": self.spec}


def generated_nodes(count: int, text: str, flag: str = "--node-shape") -> list[Raw]:
    """Return `count` equal nodes with these resources. Raises GeneratedWorkloadError."""
    resources, numbers = _parsed(flag, text, {"pods": 110, "zones": 3})
    has = {**resources, "pods": str(numbers["pods"])}
    spec: Raw = {}
    status = {"capacity": has, "allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]}
    made = []
    for number in range(count):
        name = f"node-{number}"
        labels = {HOSTNAME_LABEL: name, ZONE_LABEL: f"zone-{number % max(1, numbers['zones'])}"}
        meta = {"name": name, "labels": labels}
        made.append({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status})
    return made


@attrs.frozen
class GeneratedWorkload:
    """A number of pods of several groups, and the nodes for them."""

    nodes: Sequence[Raw]
    pods: int
    rate: float  # mean number of arriving pods per second
    lifetime_s: float  # on average
    shapes: Sequence[GeneratedPods]
    seed: int
    arrival_shape: float = 1.0
    lifetime_sigma: float = 0.0

    @property
    def objects(self) -> list[Raw]:
        """Return the priority classes and the nodes."""
        classes = sorted({shape.priority for shape in self.shapes} - {0})
        return [*map(priority_class, classes), *self.nodes]

    @property
    def event_count(self) -> int:
        return 2 * self.pods

    def events(self) -> Iterator[TraceEvent]:
        """Yield arrivals and ends in order of time; at equal times, ends are first."""
        random = Random(self.seed)
        weights = list(accumulate(shape.weight for shape in self.shapes))
        leaving: list[tuple[float, int, str]] = []
        now = 0.0
        for number in range(self.pods):
            now += self._interval(random)
            while leaving and leaving[0][0] <= now:
                yield _departure(*heappop(leaving))
            [shape] = random.choices(self.shapes, cum_weights=weights)
            name = f"{shape.name}-{number}"
            key = f"{NAMESPACE}/{name}"
            heappush(leaving, (now + self._lifetime(random), number, key))
            yield TraceEvent(now, "create", key, shape.manifest(name))
        while leaving:
            yield _departure(*heappop(leaving))

    def _interval(self, random: Random) -> float:
        if self.arrival_shape == 1:
            return random.expovariate(self.rate)
        return random.weibullvariate(1 / self.rate / gamma(1 + 1 / self.arrival_shape), self.arrival_shape)

    def _lifetime(self, random: Random) -> float:
        if not self.lifetime_sigma:
            return random.expovariate(1 / self.lifetime_s)
        return random.lognormvariate(log(self.lifetime_s) - self.lifetime_sigma**2 / 2, self.lifetime_sigma)


def _departure(time_s: float, _: int, key: str) -> TraceEvent:
    return TraceEvent(time_s, "delete", key)


def _parsed(flag: str, text: str, known: Mapping[str, int]) -> tuple[dict[str, str], dict[str, int]]:
    """Return the quantities by resource, and the integers by name; `known` contains the integers' defaults."""
    resources: dict[str, str] = {}
    numbers = dict(known)
    for part in text.split(","):
        name, _, value = part.partition("=")
        if not name or not value:
            raise GeneratedWorkloadError(flag, text, f"{part!r} must be NAME=VALUE, as cpu=500m,memory=1Gi")
        if name in resources:
            raise GeneratedWorkloadError(flag, text, f"{name} is given twice")
        if name in known:
            number = whole_number(value)
            if number is None or number > _MOST:
                raise GeneratedWorkloadError(flag, text, f"{name} must be a whole number, 0 to {_MOST}")
            numbers[name] = number
            continue
        try:
            amount = parse(value)
        except QuantityError as fault:
            raise GeneratedWorkloadError(flag, text, f"{name}: {fault}") from fault
        if amount < 0:
            raise GeneratedWorkloadError(flag, text, f"{name} must not be negative")
        resources[name] = value
    return resources, numbers
