"""GpuShare: pods share GPUs card by card; one of six policies determines where they are placed.

A node has the resource `alibabacloud.com/gpu-milli`, 1000 for each card. A pod that requests at most 1000 runs on one
card, and shares the card if it requests less. A larger request is for whole cards, a multiple of 1000. The scheduler
itself only compares sums per node. This plugin tracks the free part of each card, rejects nodes where only the sum
would fit, and chooses the cards. The plugin writes the cards to the pod's annotation `kschedd.io/gpu-cards` ("0,3")
before the pod is bound.

    profiles:
      - plugins:
          multiPoint:
            enabled: [{name: GpuShare, weight: 1000}]
        pluginConfig:
          - name: GpuShare
            args:
              policy: FGD
              typicalPods:    # for FGD: a pod list with cpu_milli, num_gpu, gpu_milli, or requests with shares
                - {cpuMilli: 4000, cards: 1, cardMilli: 500, share: 3}
                - {cpuMilli: 8000, cards: 8, cardMilli: 1000, share: 1}
                - {cpuMilli: 2000, cards: 0, cardMilli: 0, share: 1}
              popularity: 95  # the most frequent requests that make up 95% of the typical pods; default 100

| policy | prefers |
|---|---|
| Random | a random feasible node, a random card |
| DotProduct | the smallest dot product of free resources and requests |
| GpuClustering | nodes whose pods have the same kind of GPU request |
| GpuPacking | cards in use, then nodes in use |
| BestFit | the node with the least free resources afterwards |
| FGD | where least of the free GPUs becomes useless for the typical pods (Fragmentation Gradient Descent) |

Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
USENIX ATC 2023, and the simulator published with it. Units: CPU in millicores, GPUs in thousandths of a card.
Owns: the cards of the pods that it placed, until the scheduler has observed their annotation; the free cards of each
node, until the node or its pods change.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.plugin import (
    SKIP,
    ActionType,
    ClusterEventWithHint,
    CycleState,
    EventResource,
    Handle,
    Ints,
    MergePatch,
    NodeTable,
    Plan,
    Pod,
    RawArgs,
    Rows,
    SchedulerCache,
    Status,
    on,
    unresolvable,
    unschedulable,
)

GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
CARDS: Final = "kschedd.io/gpu-cards"
CARD: Final = 1000
MOST_CARDS: Final = 8
NO_CARDS: Final = 1
_MANY_CHOSEN: Final = 256
_MOST_STATES: Final = 100_000
_STATE: Final = np.dtype((np.void, 8 * (1 + MOST_CARDS)))  # CPU and cards of a node as bytes

# Scores of DotProduct, BestFit and GpuClustering are relative to the largest node of the published trace.
_CPU_OF_LARGEST: Final = 128_000
_GPU_OF_LARGEST: Final = MOST_CARDS * CARD


@attrs.frozen
class Demand:
    """GPU request of a pod: A request for `cards` cards, with `milli` of each."""

    cpu: int
    cards: int
    milli: int

    @classmethod
    def of(cls, pod: Pod) -> Self:
        requests = pod.requests
        total = requests.get(GPU_MILLI, 0)
        return cls(requests.get("cpu", 0), -(-total // CARD), total if total < CARD else CARD)

    @property
    def total(self) -> int:
        return self.cards * self.milli

    @property
    def kind(self) -> int:
        """The kind that GpuClustering separates: a share of a card (0), one card, two cards, and so on."""
        return 0 if self.milli < CARD else min(self.cards, MOST_CARDS)


@attrs.frozen(eq=False)
class Free:
    """Free resources of some rows; `cards` is rows x MOST_CARDS, with 0 for cards that a node does not have."""

    cpu: Ints
    cards: Ints
    there: Ints  # number of cards of each node
    kinds: Ints  # kinds of the node's pods with a GPU request: bit `Demand.kind` is set

    @property
    def gpu(self) -> Ints:
        return np.asarray(self.cards.sum(axis=1))


def fits(free: Free, demand: Demand) -> Any:
    """Return which rows have enough cards with enough free capacity."""
    return (free.cards >= demand.milli).sum(axis=1) >= demand.cards


def tightest(left: Sequence[int], demand: Demand) -> list[int]:
    """Return the fitting cards of one node: the fullest first, equally full ones by number."""
    return sorted((card for card in range(len(left)) if left[card] >= demand.milli), key=lambda card: left[card])


# -- policies: a score for each row, of rows that fit; higher is better ----------------------------------------------


def dot_product(free: Free, demand: Demand) -> Ints:
    alike = free.cpu / _CPU_OF_LARGEST * (demand.cpu / _CPU_OF_LARGEST)
    alike += free.gpu / _GPU_OF_LARGEST * (demand.total / _GPU_OF_LARGEST)
    return np.asarray((100 * (1 - alike / 2)).astype(np.int64))


def best_fit(free: Free, demand: Demand) -> Ints:
    left = 0.5 * (free.cpu - demand.cpu) / _CPU_OF_LARGEST + 0.5 * (free.gpu - demand.total) / _GPU_OF_LARGEST
    return np.asarray(((1 - left) * 100).astype(np.int64))


def gpu_packing(free: Free, demand: Demand) -> Ints:
    """Return 50 to 100 if cards in use suffice, and 33 to 50 if free cards of a node in use are needed."""
    if not demand.cards:
        return np.zeros(len(free.cpu), dtype=np.int64)
    whole = (free.cards == CARD).sum(axis=1)
    # Cards that are too full come last; the others are sorted by their free part.
    order = np.sort(np.where(free.cards >= demand.milli, free.cards, 2 * CARD), axis=1)[:, : demand.cards]
    new = (order == CARD).sum(axis=1)
    in_use = np.maximum(100 - (order * 100 // CARD).sum(axis=1) // 10, 50)
    score = np.where(new > 0, np.maximum(50 - new, 33), in_use)
    return np.asarray(np.where(whole == free.there, np.maximum(33 - whole, whole), score))


def gpu_clustering(free: Free, demand: Demand) -> Ints:
    """Return scores in four bands of 25: only pods of this kind, some of them, no pods, only others."""
    if not demand.cards:
        return np.zeros(len(free.cpu), dtype=np.int64)
    kind = 1 << demand.kind
    bands = np.select([free.kinds == kind, (free.kinds & kind) > 0, free.kinds == 0], [3, 2, 1], 0)
    return np.asarray(25 * (_GPU_OF_LARGEST - free.gpu) // _GPU_OF_LARGEST + 25 * bands)


class Fragmentation:
    """Expected amount of free GPU capacity that a typical pod cannot use; the mean over the typical pods.

    A typical pod that requests no GPU can use none of the free capacity. If a typical pod fits on the node, it cannot
    use the cards with less free capacity than it requests. If it does not fit, it cannot use any card.
    """

    def __init__(self, typical: Mapping[Demand, float]) -> None:
        # Sums of whole numbers are exact. Shares are therefore not divided by their total before the last step.
        self._total = sum(typical.values())
        with_gpu = {demand: share for demand, share in typical.items() if demand.cards}
        self._without = self._total - sum(with_gpu.values())
        self._share = np.array(list(with_gpu.values()), dtype=np.float64)
        self._cpu = np.array([demand.cpu for demand in with_gpu], dtype=np.int64)
        self._cards = np.array([demand.cards for demand in with_gpu], dtype=np.int64)
        self._milli = np.array([demand.milli for demand in with_gpu], dtype=np.int64)
        self._known: dict[bytes, float] = {}  # by state

    def of(self, cpu: Ints, cards: Ints) -> Any:
        """Return thousandths of a card for each state (cpu: n; cards: n x MOST_CARDS); known states are looked up."""
        states = np.column_stack((cpu, np.sort(cards, axis=1)))
        keys = states.view(_STATE).ravel().tolist()
        unknown = {key: place for place, key in enumerate(keys) if key not in self._known}
        if unknown:
            if len(self._known) > _MOST_STATES:
                self._known.clear()
                unknown = {key: place for place, key in enumerate(keys)}
            computed = self._computed(states[list(unknown.values())])
            self._known.update(zip(unknown, computed.tolist(), strict=True))
        return np.array([self._known[key] for key in keys])

    def _computed(self, states: Ints) -> Any:
        cpu, cards = states[:, 0], states[:, 1:]
        total = cards.sum(axis=1)
        enough = cards[:, :, None] >= self._milli  # states x cards x typical pods
        fits = (enough.sum(axis=1) >= self._cards) & (cpu[:, None] >= self._cpu)
        lost = np.where(enough, 0, cards[:, :, None]).sum(axis=1)
        return (np.where(fits, lost, total[:, None]) @ self._share + self._without * total) / self._total

    def after(self, free: Free, demand: Demand) -> Any:
        """Return the fragmentation with the pod on each node's best cards (n x MOST_CARDS for a share, else n x 1)."""
        cpu = free.cpu - demand.cpu
        if demand.cards == 1 and demand.milli < CARD:
            lowered = np.repeat(free.cards[:, None, :], MOST_CARDS, axis=1)
            lowered[:, range(MOST_CARDS), range(MOST_CARDS)] -= demand.milli
            after = self.of(np.repeat(cpu, MOST_CARDS), lowered.reshape(-1, MOST_CARDS)).reshape(-1, MOST_CARDS)
            return np.where(free.cards >= demand.milli, after, np.inf)
        whole = free.cards == CARD
        taken = whole & (np.cumsum(whole, axis=1) <= demand.cards)
        return self.of(cpu, np.where(taken, 0, free.cards) if demand.cards else free.cards)[:, None]

    def scores(self, free: Free, demand: Demand) -> Any:
        """Return scores from 0 to 100 in the shape of `after`; 50 if nothing changes, -1 for cards that do not fit."""
        gained = (self.of(free.cpu, free.cards)[:, None] - self.after(free, demand)) / CARD
        with np.errstate(over="ignore"):
            return np.where(np.isfinite(gained), 100 / (1 + np.exp(-gained)), -1).astype(np.int64)


_BY_STATE: Final[Mapping[str, Callable[[Free, Demand], Ints]]] = {
    "DotProduct": dot_product,
    "BestFit": best_fit,
    "GpuPacking": gpu_packing,
    "GpuClustering": gpu_clustering,
}
POLICIES: Final = ("Random", "DotProduct", "GpuClustering", "GpuPacking", "BestFit", "FGD")


# -- free cards, by row ----------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class KnownRows:
    """Cards, number of cards and kinds of each row of the scheduler's table, until its node or its pods change."""

    _values: Ints = attrs.field(factory=lambda: np.zeros((0, MOST_CARDS + 2), dtype=np.int64))
    _at: Ints = attrs.field(factory=lambda: np.zeros(0, dtype=np.int64))  # stamp of each row; -1: unknown
    _stamp: int = -1  # number of changes of the cluster that were followed

    def stale(self, table: NodeTable, rows: Rows) -> Rows:
        """Return the rows that have to be computed, which the caller then passes to `keep`."""
        versions = table.versions
        changed = versions.nodes.since(self._stamp)
        if changed is None or len(self._at) < table.capacity:
            self._values = np.zeros((table.capacity, MOST_CARDS + 2), dtype=np.int64)
            self._at = np.full(table.capacity, -1)
        else:
            self._at[changed] = -1
        self._stamp = versions.now
        return np.asarray(rows[versions.row_pods_at[rows] > self._at[rows]])

    def keep(self, rows: Rows, free: Free) -> None:
        self._values[rows] = np.column_stack((free.cards, free.there, free.kinds))
        self._at[rows] = self._stamp

    def forget(self, rows: Rows) -> None:
        self._at[rows[rows < len(self._at)]] = -1

    def free(self, rows: Rows, cpu: Ints) -> Free:
        values = self._values[rows]
        return Free(cpu, values[:, :MOST_CARDS], values[:, MOST_CARDS], values[:, MOST_CARDS + 1])


# -- the plugin ------------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class GpuShare:
    name: ClassVar = "GpuShare"
    _policy: str
    _fragmentation: Fragmentation | None
    _handle: Handle
    _chosen: dict[str, tuple[int, ...]] = attrs.field(factory=dict)  # pod uid -> its cards
    _known: KnownRows = attrs.field(factory=KnownRows)

    @property
    def depends_on(self) -> frozenset[str] | None:
        """The result for a node depends on the node, its pods and the new pod's request; with Random on the pod."""
        return None if self._policy == "Random" else frozenset({"node", "requested", "pods"})

    @classmethod
    def from_args(cls, args: RawArgs, handle: Handle) -> Self:
        policy = args.values.get("policy", "BestFit")
        if policy not in POLICIES:
            raise ValueError(f"policy: {policy!r}: must be one of {', '.join(POLICIES)}")
        typical = _typical(args.values.get("typicalPods", ())) if policy == "FGD" else {}
        typical = _most_frequent(typical, args.values.get("popularity", 100))
        if policy == "FGD" and not typical:
            raise ValueError("typicalPods: required by policy FGD")
        return cls(policy, Fragmentation(typical) if typical else None, handle)

    # -- which nodes

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        total = pod.requests.get(GPU_MILLI, 0)
        if not total:
            return SKIP
        if total > CARD and total % CARD:
            return unresolvable(f"{GPU_MILLI} {total}: more than one card must be whole cards, a multiple of {CARD}")
        return None

    def idle_for(self, pod: Pod) -> tuple[str, ...]:
        return () if GPU_MILLI in pod.requests else ("pre_filter", "filter")

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        demand = Demand.of(pod)
        if not demand.cards:
            return None
        return np.where(fits(self._free(table, rows), demand), 0, NO_CARDS).astype(np.int64)

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        return unschedulable("Insufficient GPU cards with enough left")

    # -- which node

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        demand = Demand.of(pod)
        if self._policy == "Random":
            scores = np.zeros(len(rows), dtype=np.int64)
            scores[self._random("node", pod).randrange(len(rows))] = 100
            return scores
        free = self._free(table, rows)
        if self._fragmentation is not None:
            return np.asarray(self._fragmentation.scores(free, demand).max(axis=1))
        return _BY_STATE[self._policy](free, demand)

    def _random(self, what: str, pod: Pod) -> Random:
        return Random(f"{self._handle.seed}/{what}/{pod.key}")

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        """Normalize the scores of BestFit to 0 to 100; those of other policies are unchanged."""
        if self._policy != "BestFit" or not len(scores):
            return scores
        lowest, span = scores.min(), scores.max() - scores.min()
        return np.asarray((scores - lowest) * 100 // span) if span else np.zeros_like(scores)

    # -- which cards

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        demand = Demand.of(pod)
        if demand.cards:
            table = self._handle.cluster.table
            rows = np.array([table.row_of[node_name]], dtype=np.int64)
            free = self._computed(table, rows, besides=pod.uid)
            cards = self._choose(attrs.evolve(free, cpu=free.cpu + demand.cpu), demand, pod)
            if len(cards) < demand.cards:
                return unschedulable("Insufficient GPU cards with enough left")
            self._forget_the_gone()
            self._chosen[pod.uid] = tuple(sorted(cards))
            self._known.forget(rows)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._chosen.pop(pod.uid, None)

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Plan | Status | None:
        cards = self._chosen.get(pod.uid)
        if cards is None:
            return None
        annotations = {CARDS: ",".join(map(str, cards))}
        patch = {"metadata": {"annotations": annotations}}
        return Plan((MergePatch("Pod", pod.namespace, pod.name, patch),))

    def _forget_the_gone(self) -> None:
        """Remove pods that were deleted, or whose annotation was observed; called from time to time."""
        if len(self._chosen) >= _MANY_CHOSEN:
            cluster = self._handle.cluster
            for uid in list(self._chosen):
                pod = cluster.pod(uid)
                if pod is None or CARDS in pod.annotations:
                    del self._chosen[uid]

    def _choose(self, free: Free, demand: Demand, pod: Pod) -> list[int]:
        left = free.cards[0].tolist()
        fitting = tightest(left, demand)
        if demand.milli < CARD and fitting:
            if self._policy == "Random":
                return [self._random("card", pod).choice(fitting)]
            if self._fragmentation is not None:
                return [int(self._fragmentation.scores(free, demand)[0].argmax())]
        return fitting[: demand.cards]

    # -- free capacity

    def _free(self, table: NodeTable, rows: Rows) -> Free:
        """Return the free capacity of these rows; computed again only if a row of the scheduler's table has changed."""
        if table != self._handle.cluster.table:
            return self._computed(table, rows)  # a what-if copy
        stale = self._known.stale(table, rows)
        if len(stale):
            self._known.keep(stale, self._computed(table, stale))
        return self._known.free(rows, _free_cpu(table, rows))

    def _computed(self, table: NodeTable, rows: Rows, besides: str = "") -> Free:
        """Return the free capacity of these rows. `besides`: the UID of a placed pod whose cards are not counted."""
        gpu = table.resource(GPU_MILLI)
        there = np.minimum(table.allocatable[gpu, rows] // CARD, MOST_CARDS)
        cards = np.where(np.arange(MOST_CARDS) < there[:, None], CARD, 0)
        kinds = np.zeros(len(rows), dtype=np.int64)
        for number, row in enumerate(rows.tolist()):
            for pod in table.pods[row]:
                demand = Demand.of(pod)
                if demand.cards and pod.uid != besides:
                    left = cards[number]
                    for card in self._cards_of(pod) or tightest(left.tolist(), demand)[: demand.cards]:
                        left[card] = max(left[card] - demand.milli, 0)
                    kinds[number] |= 1 << demand.kind
        return Free(_free_cpu(table, rows), cards, there, kinds)

    def _cards_of(self, pod: Pod) -> tuple[int, ...]:
        """Return the pod's cards; () if neither this plugin nor the pod's annotation contains any."""
        chosen = self._chosen.get(pod.uid)
        annotated = pod.annotations.get(CARDS)
        if annotated is None:
            return chosen or ()
        if chosen is not None:
            del self._chosen[pod.uid]  # the annotation was observed
        cards = annotated.split(",")
        return tuple(int(card) for card in cards if card.isdecimal() and int(card) < MOST_CARDS)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
            on(EventResource.POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN),
        ]


def _free_cpu(table: NodeTable, rows: Rows) -> Ints:
    cpu = table.resource("cpu")
    return np.asarray(table.allocatable[cpu, rows] - table.requested[cpu, rows])


def _typical(given: Any) -> dict[Demand, float]:
    if isinstance(given, str):
        return _listed(given)
    if not isinstance(given, Sequence):
        raise ValueError("typicalPods: must be a list, or a file with pods")
    found: dict[Demand, float] = {}
    for number, each in enumerate(given):
        try:
            demand = Demand(int(each["cpuMilli"]), int(each["cards"]), int(each["cardMilli"]))
            share = float(each["share"])
        except (KeyError, TypeError, ValueError) as fault:
            raise ValueError(f"typicalPods[{number}]: cpuMilli, cards, cardMilli and share must be numbers") from fault
        if min(demand.cpu, demand.cards, demand.milli) < 0 or demand.milli > CARD or not share > 0:
            raise ValueError(f"typicalPods[{number}]: none may be negative, cardMilli at most {CARD}, share above 0")
        found[demand] = found.get(demand, 0.0) + share
    return found


def _most_frequent(typical: Mapping[Demand, float], percent: Any) -> dict[Demand, float]:
    """Return the most frequent requests, as many as make up this percentage of the pods."""
    if not isinstance(percent, int | float) or not 0 < percent <= 100:
        raise ValueError(f"popularity: {percent!r}: must be more than 0, and at most 100")
    left, found = sum(typical.values()) * percent / 100, dict[Demand, float]()
    for demand in sorted(typical, key=lambda demand: -typical[demand]):
        if left <= 0:
            break
        found[demand] = typical[demand]
        left -= typical[demand]
    return found


def _listed(path: str) -> dict[Demand, float]:
    """Return the requests in a pod list, and the number of pods of each."""
    found: dict[Demand, float] = {}
    try:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                cards = int(row["num_gpu"])
                demand = Demand(int(row["cpu_milli"]), cards, int(row["gpu_milli"] or 0) if cards else 0)
                found[demand] = found.get(demand, 0.0) + 1
    except (OSError, KeyError, ValueError) as fault:
        raise ValueError(f"typicalPods: {path}: must be a CSV file with cpu_milli, num_gpu and gpu_milli") from fault
    return found
