"""OpportunisticBatching: a pod like the one before it is tried on the next best node of that one's attempt first.

Most pods come in numbers. Where the node that the last one took is full for the next, and nothing else came between,
the scores of its attempt still hold for all other nodes: so the next best of them, if the pod fits there, is taken
without a search and without scores. Where it does not fit there, all nodes are searched as ever.

Known are the results of one attempt, for each profile, and they are used only

* in the scheduling cycle that follows (a pod that came to nothing, or of another profile, ends it),
* for a pod of the same batch signature (`signing`), where it has one,
* for half a second after the search,
* if filters reject the pod on the node that the last cycle chose.

An attempt that took the node it was hinted at keeps what is known; any other replaces it. The pods of a PodGroup are
tried in one cycle, so that none of them gets a hint from another.

Pure; time is told. What it knows is part of a fork, and of a recording that begins on a running daemon.
Rules: opportunistic_batching. Source: Kubernetes v1.36, scheduler/framework/runtime/batch.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import attrs
import numpy as np

from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, Rows
from kschedd.scheduling.ties import Choose, NodeTies, heapify, pop_first

MAX_AGE_S: Final = 0.5


@attrs.define(eq=False)
class SortedNodes:
    """The nodes that were scored, in visiting order, until the first is popped; then those that are left.

    Where ties go by order the lists are then the heap that kube-scheduler has. Until then the node that the attempt
    took is among them, because taking it moves others.
    """

    names: list[str]
    totals: list[int]

    @classmethod
    def of(cls, rows: Rows, totals: Ints, names: Sequence[str]) -> Self:
        return cls([names[row] for row in rows.tolist()], totals.tolist())

    def __len__(self) -> int:
        return len(self.names)

    def pop(self, choose: Choose, taken: str) -> str:
        """Remove and return the best node but the one that was taken; among equals `choose` decides."""
        in_order = isinstance(choose, NodeTies) and not choose.drawn
        if in_order:
            heapify(self.totals, self.names)
        if taken in self.names:
            self._take(taken, in_order)
        if in_order:
            return pop_first(self.totals, self.names)
        totals = np.array(self.totals, dtype=np.int64)
        best = (totals == totals.max()).nonzero()[0]
        at = int(best[0]) if len(best) == 1 else choose(best, self.names, None)
        del self.totals[at]
        return self.names.pop(at)

    def _take(self, taken: str, in_order: bool) -> None:
        if in_order and self.names[0] == taken:
            pop_first(self.totals, self.names)
            return
        at = self.names.index(taken)
        del self.totals[at], self.names[at]
        if in_order:  # another was chosen by hand
            heapify(self.totals, self.names)


@attrs.define(eq=False)
class BatchState:
    """What is known in one profile."""

    signature: str = ""
    nodes: SortedNodes = attrs.field(factory=lambda: SortedNodes([], []))
    created_s: float = 0.0
    cycle: int = -1  # the last one that came to a node, and which
    chosen: str = ""

    def follows(self, cycle: int, signature: str | None, now_s: float) -> bool:
        """Whether what is known may serve this cycle, if only the node that was chosen is full."""
        return (
            bool(self.nodes)
            and cycle == self.cycle + 1
            and signature == self.signature
            and now_s <= self.created_s + MAX_AGE_S
        )

    def store(
        self, cycle: int, signature: str | None, hint: str, chosen: str, others: SortedNodes | None, now_s: float
    ) -> None:
        """A cycle has come to a node. `others`: None where it was the only one that was feasible."""
        self.cycle, self.chosen = cycle, chosen
        if hint == chosen:
            return
        known = others if signature is not None and others else SortedNodes([], [])
        self.signature, self.nodes, self.created_s = signature or "", known, now_s


@attrs.define(eq=False)
class Batching:
    """What one attempt knows of the cycle before, and leaves to the next. `signature` None: the pod has none."""

    _state: BatchState
    _cycle: int
    _signature: str | None
    _now_s: float
    hint: str = attrs.field(default="", init=False)  # the node to be tried first

    @property
    def full_node(self) -> str:
        """The node that has to be full for a hint to be given; "" where none is given."""
        state = self._state
        return state.chosen if state.follows(self._cycle, self._signature, self._now_s) else ""

    def take_hint(self, choose: Choose) -> None:
        self.hint = self._state.nodes.pop(choose, self._state.chosen)

    def store(self, chosen: str, rows: Rows, totals: Ints | None, names: Sequence[str]) -> None:
        """The attempt has come to a node, by these totals of rows; None: it was the only one."""
        others = None
        if self._signature is not None and totals is not None and self.hint != chosen:
            others = SortedNodes.of(rows, totals, names)
        self._state.store(self._cycle, self._signature, self.hint, chosen, others, self._now_s)


@attrs.define(eq=False)
class Batches:
    """What is known in all profiles, and the number of the scheduling cycle; see `Handle.shared`."""

    cluster: SchedulerCache
    cycle: int = 0
    _states: dict[str, BatchState] = attrs.field(factory=dict, init=False)

    def of(self, profile: str) -> BatchState:
        return self._states.setdefault(profile, BatchState())

    def next_cycle(self) -> int:
        """A pod was popped."""
        self.cycle += 1
        return self.cycle

    def forget(self) -> None:
        """The configuration is another one."""
        self._states.clear()

    def fork(self, cluster: SchedulerCache) -> Self:
        forked = type(self)(cluster)
        forked.restore(self.saved())
        return forked

    def saved(self) -> Mapping[str, Any]:
        """As plain values."""
        states = {
            profile: [one.signature, [*one.nodes.names], [*one.nodes.totals], one.created_s, one.cycle, one.chosen]
            for profile, one in self._states.items()
        }
        return {"cycle": self.cycle, "states": states}

    def restore(self, saved: Mapping[str, Any]) -> None:
        self.cycle = saved["cycle"]
        self._states = {
            profile: BatchState(signature, SortedNodes([*names], [*totals]), created_s, cycle, chosen)
            for profile, (signature, names, totals, created_s, cycle, chosen) in saved["states"].items()
        }
