"""OpportunisticBatching: reuse of the scores of one attempt for the next pod of the same kind.

Pods often arrive in groups made from one template. If the previous pod filled its node and nothing else changed, the
previous scores of all other nodes are still valid. The next attempt then first tries the next best node, without a
search and without scoring. If the pod does not fit on that node, all nodes are searched as usual.

Each profile stores the results of its last attempt. They are used only
* The stored results may be used only in the next scheduling cycle (a failed attempt, or an attempt of another profile,
  discards them),
* only for a pod with the same batch signature (`signing`),
* only within half a second after the search,
* and only if filters reject the pod on the node that the last cycle selected. With the rule batch_rescores, if the pod
  still fits on the last selected node, this node is scored again and competes with the other nodes.

An attempt that selects the hinted node keeps the stored results; any other attempt replaces them. The pods of a
PodGroup are tried in one cycle, so they cannot use each other's results.

The module reads no clock: the time is an argument. The stored results are part of a fork, and of a recording that
starts on a running daemon.

Rules: opportunistic_batching, batch_rescores, nominated_pods_unbatched. Source: Kubernetes v1.36 and v1.37,
scheduler/framework/runtime/batch.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import attrs
import numpy as np

from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, Rows
from kschedd.metrics import catalogue
from kschedd.metrics.instruments import Counter, Histogram
from kschedd.scheduling.attempt.ties import Choose, NodeTies, heapify, pop_first

MAX_AGE_S: Final = 0.5


@attrs.define(eq=False)
class SortedNodes:
    """The nodes that were scored but not selected; `choose` breaks ties when a node is popped.

    Without random ties, the lists form the same heap as in kube-scheduler. The selected node is removed from
    the heap only when an attempt needs the next node, because a removal reorders the heap.
    """

    names: list[str]
    totals: list[int]
    # Raw scores of each node by plugin; stored only if nodes are rescored
    raw: dict[str, list[int]] = attrs.field(factory=dict)
    taken: str = ""  # node that the attempt selected and that is still in the heap

    @classmethod
    def of(
        cls, taken: str, rows: Rows, totals: Ints, names: Sequence[str], raw: Mapping[str, Ints] | None = None
    ) -> Self:
        """Build the heap from these rows, which are in visiting order."""
        kept = {plugin: values.tolist() for plugin, values in (raw or {}).items()}
        return cls([names[row] for row in rows.tolist()], totals.tolist(), kept, taken)

    def add(self, name: str, raw: Mapping[str, int]) -> None:
        """Add a node with these raw scores; its total is not computed yet."""
        for plugin in {**self.raw, **raw}:
            self.raw.setdefault(plugin, [0] * len(self.names)).append(raw.get(plugin, 0))
        self.names.append(name)

    def __len__(self) -> int:
        return len(self.names) - bool(self.taken)

    def take_out(self, choose: Choose) -> None:
        """Remove the node that the attempt selected, if it is still in the heap."""
        if not self.taken:
            return
        if _in_order(choose):
            heapify(self.totals, *self._columns())
            at = self.names.index(self.taken)
            if at == 0:
                pop_first(self.totals, *self._columns())
            else:  # the node was forced by the user
                self._remove(at)
        else:
            self._remove(self.names.index(self.taken))
        self.taken = ""

    def pop(self, choose: Choose) -> str:
        """Remove and return the best node."""
        self.take_out(choose)
        if _in_order(choose):
            heapify(self.totals, *self._columns())
            name = self.names[0]
            pop_first(self.totals, *self._columns())
            return name
        totals = np.array(self.totals, dtype=np.int64)
        best = (totals == totals.max()).nonzero()[0]
        at = int(best[0]) if len(best) == 1 else choose(best, self.names, None)
        name = self.names[at]
        self._remove(at)
        return name

    def _columns(self) -> list[list[Any]]:
        return [self.names, *self.raw.values()]

    def _remove(self, at: int) -> None:
        for column in (self.totals, *self._columns()):
            del column[at]


def _in_order(choose: Choose) -> bool:
    return isinstance(choose, NodeTies) and not choose.drawn


@attrs.define(eq=False)
class BatchState:
    """The stored results of one profile."""

    signature: str = ""
    nodes: SortedNodes = attrs.field(factory=lambda: SortedNodes([], []))
    created_s: float = 0.0
    cycle: int = -1  # number of the last cycle that found a node
    chosen: str = ""
    hinted: str = ""  # node that the last cycle had to try first

    def why_unusable(self, cycle: int, signature: str | None, now_s: float, *, nominated: bool) -> str:
        """Return why the stored results cannot be used; "" if they can (their node must also be full)."""
        if cycle != self.cycle + 1:
            return "pod_skipped"
        if nominated:
            return "pod_nominated"
        if signature != self.signature:
            return "pod_incompatible"
        return "" if now_s <= self.created_s + MAX_AGE_S else "expired"

    def store(
        self, cycle: int, signature: str | None, hint: str, chosen: str, others: SortedNodes | None, now_s: float
    ) -> None:
        """Store the result of a cycle that found a node; `others` is None if no other node was feasible."""
        self.cycle, self.chosen = cycle, chosen
        if hint == chosen:
            return
        known = others if signature is not None and others else SortedNodes([], [])
        self.signature, self.nodes, self.created_s = signature or "", known, now_s


@attrs.frozen(eq=False)
class BatchCounts:
    """The metrics of batching for one profile."""

    profile: str
    _attempts: Counter
    _flushed: Counter
    _rescores: Counter
    _lookup_s: Histogram
    _store_s: Histogram
    _rescore_s: Histogram

    def attempted(self, result: str) -> None:
        self._attempts.add(self.profile, result)

    def unusable(self, why: str) -> None:
        self._flushed.add(self.profile, why)

    def rescored(self, took_s: float) -> None:
        self._rescores.add(self.profile)
        self._rescore_s.observe(took_s, self.profile)

    def looked_up(self, hint: str, took_s: float) -> None:
        self._lookup_s.observe(took_s, "hint" if hint else "no_hint", self.profile)

    def stored(self, took_s: float) -> None:
        self._store_s.observe(took_s, self.profile)


@attrs.define(eq=False)
class Batching:
    """An attempt's access to the results of the previous cycle, and to the results that it stores for the next cycle.

    `signature` is None if the pod has no batch signature.
    """

    _state: BatchState
    _cycle: int
    _signature: str | None
    _now_s: float
    _counts: BatchCounts
    hint: str = attrs.field(default="", init=False)  # the node to try first

    def full_node(self, *, nominated: bool) -> str:
        """Return the last selected node if a hint is stored, else ""; the hint is valid only if this node is full.

        Pods with a nominated node (`nominated`) get no hint.
        """
        state = self._state
        if not state.nodes:
            return ""
        why = state.why_unusable(self._cycle, self._signature, self._now_s, nominated=nominated)
        if why:
            self._counts.unusable(why)
            return ""
        return state.chosen

    def unusable(self, why: str) -> None:
        """Count stored results that are unusable for this reason."""
        self._counts.unusable(why)

    def rescored(self, took_s: float) -> None:
        self._counts.rescored(took_s)

    def tried(self, took_s: float) -> None:
        """Record the lookup of a hint, and count the attempt if there was no hint."""
        self._counts.looked_up(self.hint, took_s)
        if not self.hint:
            self._counts.attempted("no_hint")

    def stored(self, took_s: float) -> None:
        self._counts.stored(took_s)

    def nodes_left(self, choose: Choose) -> SortedNodes:
        """Return the remaining scored nodes; the best of them is the hint."""
        self._state.nodes.take_out(choose)
        return self._state.nodes

    def replaces(self, chosen: str) -> bool:
        """Return whether an attempt that selected this node replaces the stored scores."""
        return self._signature is not None and self.hint != chosen

    def take_hint(self, choose: Choose) -> None:
        self.hint = self._state.hinted = self._state.nodes.pop(choose)

    def store(
        self,
        chosen: str,
        rows: Rows,
        totals: Ints | None,
        names: Sequence[str],
        raw: Mapping[str, Ints] | None = None,
    ) -> None:
        """Store the results of the attempt.

        `totals` are the total scores of `rows`, or None if no other node was feasible. `raw`: scores by plugin.
        """
        others = None
        if totals is not None and self.replaces(chosen):
            others = SortedNodes.of(chosen, rows, totals, names, raw)
        if self.hint:
            self._counts.attempted("hint_used" if self.hint == chosen else "hint_not_used")
        if self.hint != chosen and not others:
            self._counts.unusable("empty_list" if totals is None else "pod_not_batchable")
        self._state.store(self._cycle, self._signature, self.hint, chosen, others, self._now_s)


@attrs.define(eq=False)
class Batches:
    """The stored results of all profiles, and the number of the scheduling cycle, as state shared by plugins."""

    cluster: SchedulerCache
    cycle: int = 0
    _states: dict[str, BatchState] = attrs.field(factory=dict, init=False)
    counters: tuple[Counter, Counter, Counter] = attrs.field(
        factory=lambda: (
            Counter(catalogue.BATCH_ATTEMPTS),
            Counter(catalogue.BATCH_FLUSHED),
            Counter(catalogue.BATCH_RESCORES),
        ),
        init=False,
    )
    durations: tuple[Histogram, Histogram, Histogram] = attrs.field(
        factory=lambda: (
            Histogram(catalogue.HINT_LOOKUP_DURATION),
            Histogram(catalogue.BATCH_STORE_DURATION),
            Histogram(catalogue.BATCH_RESCORE_DURATION),
        ),
        init=False,
    )

    def of(self, profile: str) -> BatchState:
        return self._states.setdefault(profile, BatchState())

    def counts(self, profile: str) -> BatchCounts:
        return BatchCounts(profile, *self.counters, *self.durations)

    def next_cycle(self) -> int:
        """Count a popped pod and return the number of its cycle."""
        self.cycle += 1
        return self.cycle

    def forget(self) -> None:
        """Discard all results, because the configuration changed."""
        self._states.clear()

    def fork(self, cluster: SchedulerCache) -> Self:
        forked = type(self)(cluster)
        forked.restore(self.saved())
        return forked

    def saved(self) -> Mapping[str, Any]:
        """Return the stored results as plain values, for a recording."""
        states = {
            profile: [
                *(one.signature, [*one.nodes.names], [*one.nodes.totals], one.created_s, one.cycle, one.chosen),
                {plugin: [*values] for plugin, values in one.nodes.raw.items()},
                one.nodes.taken,
            ]
            for profile, one in self._states.items()
        }
        return {"cycle": self.cycle, "states": states}

    def restore(self, saved: Mapping[str, Any]) -> None:
        self.cycle = saved["cycle"]
        self._states = {
            profile: BatchState(signature, _nodes(names, totals, *more), created_s, cycle, chosen)
            for profile, (signature, names, totals, created_s, cycle, chosen, *more) in saved["states"].items()
        }


def _nodes(
    names: Sequence[str],
    totals: Sequence[int],
    raw: Mapping[str, Sequence[int]] | None = None,
    taken: str = "",
) -> SortedNodes:
    """Return saved nodes. Older recordings contain neither raw scores nor the selected node."""
    return SortedNodes([*names], [*totals], {plugin: [*values] for plugin, values in (raw or {}).items()}, taken)
