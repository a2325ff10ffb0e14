"""Evaluations remembered by shape of pod: verdicts and scores of the `local` plugins, row by row.

Pods of one shape get the same verdict from a local plugin as long as the row it looks at stays as it is. So each shape has
columns of its own with the place of the first local filter that failed, its code, and each local plugin's raw score, and
`known` says which rows still hold. Before use the rows that changed meanwhile are struck out (the table keeps logs), and
only rows that are asked about and not known are evaluated.

Invariant: what is remembered equals what the plugins would say now (a property test holds the two equal after any changes).
A shape is remembered from its second appearance on, and the ones not seen for longest are dropped beyond a memory limit.
"""

from collections import OrderedDict
from collections.abc import Hashable

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.cache.table import Bools, Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.scheduling.profile import FilterPlugin, RunningProfile, ScorePlugin, Sort
from kschedd.scheduling.verdicts import PASSED, Places

_MEMORY = 192 << 20  # bytes of columns all shapes together may take
_FEWEST = 8


def judge_local(
    filters: tuple[FilterPlugin, ...], state: CycleState, pod: Pod, table: NodeTable, rows: Rows
) -> tuple[Places, Ints]:
    """The place of the first local filter that rejects each row (PASSED: none does), and its code."""
    failed = np.full(len(rows), PASSED, dtype=np.int16)
    codes = np.zeros(len(rows), dtype=np.int64)
    for filter_ in filters:
        if filter_.sort is not Sort.LOCAL or filter_.name in state.skip_filter:
            continue
        said = filter_.plugin.filter_rows(state, pod, table, rows)
        if said is None:
            continue
        fresh = (said != 0) & (failed == PASSED)
        if fresh.any():
            failed[fresh] = filter_.place
            codes[fresh] = said[fresh]
    return failed, codes


@attrs.define(eq=False)
class Remembered:
    """One shape's columns. `base` sums the weighted scores of plugins that do not normalise; the rest are apart."""

    known: Bools
    failed: Places
    codes: Ints
    base: Ints
    scored: Bools
    raw: dict[str, Ints]
    node_position: int
    pod_position: int
    epochs: tuple[Hashable, ...]
    skip_filter: frozenset[str]
    skip_score: frozenset[str] | None = None  # None until it was first scored


@attrs.define(eq=False)
class Memory:
    """The remembered evaluations of one profile over one cluster."""

    profile: RunningProfile
    cluster: Cluster
    _shapes: OrderedDict[int, Remembered] = attrs.field(factory=OrderedDict)
    _seen: OrderedDict[int, None] = attrs.field(factory=OrderedDict)
    _with_epochs: tuple[object, ...] = ()

    def __attrs_post_init__(self) -> None:
        local = [p.plugin for p in (*self.profile.filters, *self.profile.scores) if p.sort is Sort.LOCAL]
        self._with_epochs = tuple({id(plugin): plugin for plugin in local if hasattr(plugin, "epoch")}.values())

    def of(self, pod: Pod, state: CycleState) -> Remembered | None:
        """The pod's shape as remembered, with all that changed struck out; None if it is not to be remembered (yet)."""
        number = pod.shape.number
        found = self._shapes.get(number)
        if found is None:
            if number not in self._seen:
                self._seen[number] = None
                if len(self._seen) > 4096:
                    self._seen.popitem(last=False)
                return None
            found = self._remember(number, state)
        else:
            self._shapes.move_to_end(number)
        table = self.cluster.table
        epochs = self._epochs()
        if len(found.known) != table.capacity or found.epochs != epochs or found.skip_filter != state.skip_filter:
            found = self._remember(number, state)
        self._strike_out(found, table)
        return found

    def forget_all(self) -> None:
        """The profile's plugins changed."""
        self._shapes.clear()

    def _epochs(self) -> tuple[Hashable, ...]:
        return tuple(plugin.epoch(self.cluster) for plugin in self._with_epochs)  # type: ignore[attr-defined]

    def _remember(self, number: int, state: CycleState) -> Remembered:
        table = self.cluster.table
        size = table.capacity
        fresh = Remembered(
            np.zeros(size, dtype=np.bool_),
            np.zeros(size, dtype=np.int16),
            np.zeros(size, dtype=np.int64),
            np.zeros(size, dtype=np.int64),
            np.zeros(size, dtype=np.bool_),
            {},
            table.node_changes.position,
            table.pod_changes.position,
            self._epochs(),
            frozenset(state.skip_filter),
        )
        self._shapes[number] = fresh
        most = max(_FEWEST, _MEMORY // (size * 40))
        while len(self._shapes) > most:
            self._shapes.popitem(last=False)
        return fresh

    def _strike_out(self, found: Remembered, table: NodeTable) -> None:
        of_nodes = table.node_changes
        if found.node_position != of_nodes.position:
            rows = of_nodes.since(found.node_position)
            found.node_position = of_nodes.position
            self._forget_rows(found, rows)
        of_pods = table.pod_changes
        if found.pod_position != of_pods.position:
            rows = of_pods.since(found.pod_position)
            found.pod_position = of_pods.position
            if self.profile.reads_pods:
                self._forget_rows(found, rows)

    @staticmethod
    def _forget_rows(found: Remembered, rows: list[int] | None) -> None:
        if rows is None:
            found.known[:] = False
            found.scored[:] = False
        elif len(rows) < 8:
            for row in rows:
                found.known[row] = False
                found.scored[row] = False
        else:
            found.known[rows] = False
            found.scored[rows] = False

    def judge(self, found: Remembered, state: CycleState, pod: Pod, rows: Rows) -> tuple[Places, Ints]:
        """As `judge_local`, but rows already known are looked up."""
        known = found.known[rows]
        if not known.all():
            fresh = rows[~known]
            failed, codes = judge_local(self.profile.filters, state, pod, self.cluster.table, fresh)
            found.failed[fresh] = failed
            found.codes[fresh] = codes
            found.known[fresh] = True
        return found.failed[rows], found.codes[rows]

    def score(self, found: Remembered, state: CycleState, pod: Pod, rows: Rows) -> None:
        """Bring `base` and `raw` up to date on these rows."""
        if found.skip_score != state.skip_score:
            found.skip_score = frozenset(state.skip_score)
            found.scored[:] = False
        scored = found.scored[rows]
        if scored.all():
            return
        fresh = rows[~scored]
        base, raw = score_local(self.profile.scores, state, pod, self.cluster.table, fresh)
        found.base[fresh] = base
        for name, values in raw.items():
            column = found.raw.get(name)
            if column is None:
                column = found.raw[name] = np.zeros(len(found.known), dtype=np.int64)
            column[fresh] = values
        found.scored[fresh] = True


def score_local(
    scores: tuple[ScorePlugin, ...], state: CycleState, pod: Pod, table: NodeTable, rows: Rows
) -> tuple[Ints, dict[str, Ints]]:
    """Weighted sum of the local scores that are final as they come, and the raw scores of those still to normalise."""
    base = np.zeros(len(rows), dtype=np.int64)
    raw = {}
    for score in scores:
        if score.sort is not Sort.LOCAL or score.name in state.skip_score:
            continue
        values = score.plugin.score_rows(state, pod, table, rows)
        if score.normalizes:
            raw[score.name] = values
        else:
            base += values if score.weight == 1 else values * score.weight
    return base, raw
