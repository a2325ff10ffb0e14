"""Capacity: the number of pods that still fit, and the number of nodes that a set of pods needs.

The numbers are not sums of requests: each pod is scheduled on a fork, with every filter of its profile. Affinity,
spreading, ports, volumes and taints are therefore respected. Preemption does not.

`fit_count` schedules sets of pods one after the other until a pod fits on no node. `nodes_needed` adds nodes to a fork
with all its controllers (so that DaemonSets place their pods), advances time until no work is pending, and counts the
pending pods. For one shape of nodes, the smallest number of nodes is found by bisection. For several shapes, it reduces
the number of nodes of one shape after the other, each by bisection, in several orders, and returns the cheapest result.
In that result no node can be omitted, but another combination of shapes may be cheaper.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from math import ceil
from typing import Any, Final

import attrs

from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.quantity import format_milli, milli_value, value
from kschedd.errors import KscheddError
from kschedd.framework.status import error
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot
from kschedd.simulation.engine import Engine
from kschedd.values import as_map

MOST_NODES: Final = 4_096
_REST_S: Final = 3_600.0
_ORDERS: Final = 6
_USUAL: Final = ("cpu", "memory", "ephemeral-storage")
_FACTORS: Final = tuple(Fraction(2) ** power for power in range(-4, 5))  # factors by which requests are multiplied
_TRIED: Final = error("this was a trial")


@attrs.define(eq=False)
class NotAPodError(KscheddError, rpc_code="invalid"):
    """The error for a manifest that is not a pod and contains no pod template."""

    kind: str

    def __str__(self) -> str:
        return f"a {self.kind} is no pod and has no pod template"


def pod_of(raw: Raw) -> Raw:
    """Return the pod in a manifest, or the pod that its pod template describes. Raises NotAPodError."""
    if raw.get("kind") == "Pod":
        return raw
    template: Any = raw
    for key in ("spec", "jobTemplate", "spec", "template") if raw.get("kind") == "CronJob" else ("spec", "template"):
        template = template.get(key)
        if not isinstance(template, Mapping):
            raise NotAPodError(str(raw.get("kind")))
    meta, own = dict(as_map(template.get("metadata"))), as_map(raw.get("metadata"))
    meta["generateName"] = f"{own.get('name', 'pod')}-"
    if own.get("namespace"):
        meta["namespace"] = own["namespace"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec") or {}}


@attrs.frozen
class FitCount:
    """The number of pod sets that fit.

    `why` is the reason why no further set fits ("" if the limit was reached), with the name of the pod that did not
    fit. `nodes` is the number of nodes that received pods.
    """

    count: int
    why: str
    nodes: int
    lacking: int = 0


def fit_count(
    machine: SchedulingMachine, pods: Sequence[Pod], limit: int, now: float, check: Callable[[], None]
) -> FitCount:
    """Return how many more sets, with one of each of these pods, fit; the cluster is unchanged afterwards.

    Each pod must have a profile.
    """
    placed: list[AssumedPod] = []
    why = ""
    while len(placed) < limit * len(pods):
        check()
        number, which = divmod(len(placed), len(pods))
        pod = pods[which]
        one = attrs.evolve(pod, name=f"{pod.name}-{number}", uid=f"capacity-{len(placed)}", node_name="")
        result = drive(machine.begin(one, {}))
        if isinstance(result, FitError):
            # preemption only works for stored pods, so its message is removed
            why = result.message.partition(" preemption: ")[0]
            break
        outcome = machine.completion.complete(QueuedPod(one, one.key, 0), result, now)
        if not isinstance(outcome, AssumedPod):
            why = outcome.message
            break
        placed.append(outcome)
    sets, lacking = divmod(len(placed), len(pods))
    nodes = len({assumed.pod.node_name for assumed in placed[: sets * len(pods)]})
    for assumed in reversed(placed):
        machine.waiting.pods.pop(assumed.pod.uid, None)
        machine.completion.undo(assumed, _TRIED, now)
    return FitCount(sets, why, nodes, lacking)


@attrs.frozen(eq=False)
class ScaledPod:
    """A pod with all requests multiplied by a factor.

    `amount` is the resulting request for the resource returned by `sized_by`.
    """

    pod: Pod
    amount: int


def sized_by(pod: Pod) -> str:
    """Return the resource that measures the pod's size: an extended one, else cpu or memory; "" without requests."""
    requested = [name for name, number in pod.requests.items() if number]
    return next(
        (name for name in requested if name not in _USUAL), next((name for name in _USUAL if name in requested), "")
    )


def scaled(pod: Pod, largest: int) -> Iterator[ScaledPod]:
    """Yield the pod halved and doubled several times, up to `largest` of the resource that measures its size."""
    resource = sized_by(pod)
    if not resource:
        return
    own = pod.requests[resource]
    for factor in _FACTORS:
        number = own * factor
        if number.denominator == 1 and 0 < number <= largest and factor != 1:
            raw = copy.deepcopy(dict(pod.raw))
            spec = raw["spec"]
            for holder in (spec, *(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                for amounts in (holder.get("resources") or {}).values():
                    if isinstance(amounts, dict):
                        amounts.update({name: _multiplied(name, text, factor) for name, text in amounts.items()})
            yield ScaledPod(Pod.from_raw(raw), int(number))


def _multiplied(resource: str, text: Any, factor: Fraction) -> str:
    """Multiply the requests: cpu in millicores, other resources in whole units, rounded up."""
    if resource == "cpu":
        return format_milli(ceil(milli_value(text) * factor))
    return str(ceil(value(text) * factor))


# -- nodes --------------------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class NodeShape:
    name: str
    raw: Raw
    price: float

    def nodes(self, count: int) -> Iterator[Raw]:
        meta = self.raw.get("metadata") or {}
        for number in range(count):
            name = f"{self.name}-needed-{number}"
            labels = {**(meta.get("labels") or {}), "kubernetes.io/hostname": name}
            yield {**self.raw, "metadata": {**meta, "name": name, "labels": labels}}


@attrs.frozen
class NodesNeeded:
    """The required number of nodes of each shape.

    `unplaced` are pods that do not fit with any number of nodes, with the reason.
    """

    counts: Mapping[str, int]
    price: float
    trials: int
    exact: bool
    unplaced: Sequence[tuple[str, str]]


class _Search:
    def __init__(self, base: Engine, wanted: set[str], shapes: Sequence[NodeShape], check: Callable[[], None]) -> None:
        self._base, self._wanted, self._shapes, self._check = base, wanted, shapes, check
        self._known: dict[tuple[int, ...], list[tuple[str, str]]] = {}

    @property
    def trials(self) -> int:
        return len(self._known)

    def unplaced(self, counts: Sequence[int]) -> list[tuple[str, str]]:
        """Return the wanted pods that are pending with these numbers of nodes, each with the reason."""
        key = tuple(counts)
        known = self._known.get(key)
        if known is None:
            self._check()
            known = self._known[key] = self._tried(self._base.snapshot(), counts)
        return known

    def _tried(self, snapshot: ClusterSnapshot, counts: Sequence[int]) -> list[tuple[str, str]]:
        engine = Engine(resumed=snapshot)
        try:
            for shape, count in zip(self._shapes, counts, strict=True):
                for raw in shape.nodes(count):
                    engine.store.create(raw)
            engine.run_to_rest(_REST_S)
            return pending(engine, self._wanted)
        finally:
            engine.close()

    def lowered(self, counts: list[int], place: int) -> list[int]:
        """Return `counts` with the smallest sufficient number of nodes of the shape at `place`.

        With the given `counts`, all pods must fit.
        """
        low, high = 0, counts[place]
        while low < high:
            middle = (low + high) // 2
            if self.unplaced([*counts[:place], middle, *counts[place + 1 :]]):
                low = middle + 1
            else:
                high = middle
        return [*counts[:place], high, *counts[place + 1 :]]


def pending(engine: Engine, wanted: set[str]) -> list[tuple[str, str]]:
    """Return the pending pods that have one of these uids, or an owner with one of them, each with the reason."""
    found = []
    for pod in engine.driver.pending.pods.values():
        owners = {owner.get("uid") for owner in pod.metadata.get("ownerReferences") or ()}
        if not wanted or pod.uid in wanted or owners & wanted:
            conditions = pod.status.get("conditions") or ()
            why = next((str(each.get("message")) for each in conditions if each.get("type") == "PodScheduled"), "")
            found.append((pod.key, why or "not tried yet"))
    return sorted(found)


def nodes_needed(
    base: Engine, wanted: set[str], shapes: Sequence[NodeShape], most: int, check: Callable[[], None]
) -> NodesNeeded:
    """Return the number of additional nodes that the pods need; `base` is idle and contains the pods.

    If `wanted` is empty, all pods of `base` must fit.
    """
    search = _Search(base, wanted, shapes, check)
    none = [0] * len(shapes)
    if not search.unplaced(none):
        return NodesNeeded({shape.name: 0 for shape in shapes}, 0.0, search.trials, True, ())
    enough, before = [1] * len(shapes), len(search.unplaced(none))
    while left := search.unplaced(enough):
        if enough[0] >= most or (len(left) == before and enough[0] > before):
            return NodesNeeded({}, 0.0, search.trials, True, left)
        enough = [min(2 * count, most) for count in enough]
    best: list[int] | None = None
    # The number of nodes of the most expensive shape is reduced first; then other orders are tried.
    by_price = sorted(range(len(shapes)), key=lambda place: -shapes[place].price)
    for order in list(permutations(by_price))[:_ORDERS]:
        counts = enough
        for place in order:
            counts = search.lowered(counts, place)
        if best is None or _price(counts, shapes) < _price(best, shapes):
            best = counts
    assert best is not None, "there is a shape"
    counts_by_name = {shape.name: count for shape, count in zip(shapes, best, strict=True)}
    return NodesNeeded(counts_by_name, _price(best, shapes), search.trials, len(shapes) == 1, ())


def _price(counts: Sequence[int], shapes: Sequence[NodeShape]) -> float:
    return sum(count * shape.price for count, shape in zip(counts, shapes, strict=True))


def uids_of(engine: Engine, results: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the UIDs of applied objects and of the objects that they own."""
    found: set[str] = set()
    for result in results:
        obj = engine.store.find(result["kind"], result.get("namespace") or "", result["name"])
        left = [] if obj is None else [obj]
        while left:
            one = left.pop()
            if one.uid not in found:  # objects may own each other
                found.add(one.uid)
                left += engine.store.owned_by(one.uid)
    return found
