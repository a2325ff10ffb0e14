"""AlikeNodes: what plugins that look at amounts alone have said of nodes that have the same amounts.

Where pods come in numbers, nodes become alike: one to which a pod of a template has come is as others were before it.
Plugins that look at nothing but amounts (`LooksAtAmounts`) say the same of all of them, and of all pods with the same
requests, whatever else their templates say. So they are asked once for each kind of node, and not for each node anew.

Invariant: an answer is what the plugins would say now. It is kept by all that it depends on: the pod's requests, the
plugins that take part, and the amounts of the node, the columns that `LooksAtAmounts` names. Which kind a row is of is
kept until its Node object or its pods change, or there is another resource.

For a few rows at a time: where there are many, the plugins are asked in less time than it takes to see which are alike.
So it is where nearly all pods have requests of their own, and nothing is asked twice: after some misses in a row the
plugins are asked at once for a while.
Owned by an evaluation cache.
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import repeat
from typing import Final, cast

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import LooksAtAmounts
from kschedd.framework.interface import Plugin
from kschedd.framework.normalize import lowest
from kschedd.scheduling.node_local_plugins import NodeLocalPlugins
from kschedd.scheduling.profile import EnabledFilter, EnabledScore
from kschedd.scheduling.verdicts import Places

_MOST_ROWS: Final = 64
_MOST_KINDS: Final = 1 << 11  # of nodes
_MOST_ASKED: Final = 256  # combinations of requests and plugins
_MOST_MISSES: Final = 16  # askings in a row of which nothing was known
_REST: Final = 256  # askings after that which go to the plugins at once
_UNKNOWN: Final = -1  # instead of the number of a kind, and of answers


@attrs.define(eq=False)
class _Answers:
    """By the number of the kind of node: _UNKNOWN in `failed`, or for scores, which are 0 or more, in `values`, where
    nobody has been asked."""

    failed: Places = attrs.field(factory=lambda: np.full(_MOST_KINDS, _UNKNOWN, dtype=np.int16))
    values: Ints = attrs.field(factory=lambda: np.full(_MOST_KINDS, _UNKNOWN, dtype=np.int64))  # codes, or scores


class AlikeNodes:
    """See the module; of these plugins."""

    def __init__(self, plugins: NodeLocalPlugins) -> None:
        self._plugins = plugins
        enabled: list[EnabledFilter | EnabledScore] = [*plugins.filters, *plugins.scores]
        look_at_amounts = frozenset(one.name for one in enabled if one.in_tree and _looks_at_amounts(one.plugin))
        # Of scores that are normalized the raw ones are kept, too.
        self._names = look_at_amounts - {score.name for score in plugins.scores if score.normalizes}
        self._kinds: dict[Hashable, int] = {}
        self._kind_of = np.zeros(0, dtype=np.int64)  # by row; _UNKNOWN where it has changed
        self._stamp = 0  # of the table's versions, of `_kind_of`
        self._columns = 0, 0  # how many resources the table has, and its numbering of them, likewise
        self._answers: dict[Hashable, _Answers] = {}
        self._misses = 0  # see `_MOST_MISSES`
        self._rest = 0  # how often the plugins are asked at once from now on

    def judge(
        self,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
        kinds: Ints | None,
        already_filtered_by: str = "",
    ) -> tuple[Places, Ints]:
        """As `NodeLocalPlugins.judge`. `kinds` are those of the rows (`kinds_of`)."""
        if kinds is None:
            return self._plugins.judge(state, pod, table, rows, already_filtered_by)
        names = [one.name for one in self._plugins.filters if one.name not in state.skip_filter]
        if not self._tell_apart(table, names):
            return self._plugins.judge(state, pod, table, rows, already_filtered_by)
        answers = self._known_of(("filter", pod.pod_spec.resource_requests, *names, already_filtered_by))
        failed = answers.failed[kinds]
        if lowest(failed) != _UNKNOWN:
            self._misses = 0
            return failed, answers.values[kinds]
        self._missed()
        resources = len(table.resources)
        failed, codes = self._plugins.judge(state, pod, table, rows, already_filtered_by)
        if len(table.resources) == resources:  # else by that resource these nodes may differ
            answers.failed[kinds], answers.values[kinds] = failed, codes
        return failed, codes

    def score(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, kinds: Ints | None
    ) -> tuple[Ints, dict[str, Ints]]:
        """As `NodeLocalPlugins.score`. `kinds` are those of the rows (`kinds_of`)."""
        if kinds is None:
            return self._plugins.score(state, pod, table, rows)
        names = [one.name for one in self._plugins.scores if one.name not in state.skip_score]
        if not self._tell_apart(table, names):
            return self._plugins.score(state, pod, table, rows)
        answers = self._known_of(("score", pod.pod_spec.resource_requests, *names))
        scores = answers.values[kinds]
        if lowest(scores) != _UNKNOWN:
            self._misses = 0
            return scores, {}
        self._missed()
        resources = len(table.resources)
        scores, raw = self._plugins.score(state, pod, table, rows)
        if len(table.resources) == resources:
            answers.values[kinds] = scores
        return scores, raw

    def _missed(self) -> None:
        self._misses += 1
        if self._misses >= _MOST_MISSES:
            self._misses, self._rest = 0, _REST

    def _tell_apart(self, table: NodeTable, names: Sequence[str]) -> bool:
        """Whether the latest kinds tell apart all nodes of which these plugins may say something different: they look
        at amounts alone, and there has been no other resource since."""
        return self._columns == _columns(table) and self._names.issuperset(names)

    def _known_of(self, asked: Hashable) -> _Answers:
        """What is known of what depends on that, beside the node."""
        answers = self._answers.get(asked)
        if answers is None:
            if len(self._answers) >= _MOST_ASKED:
                self._answers.clear()
            answers = self._answers[asked] = _Answers()
        return answers

    def kinds_of(self, table: NodeTable, rows: Rows) -> Ints | None:
        """The number of each row's kind, as the table is now; None where the plugins are better asked."""
        if len(rows) > _MOST_ROWS or table.wraps or not self._names:
            return None
        if self._rest:
            self._rest -= 1
            return None
        if len(self._kinds) > _MOST_KINDS - _MOST_ROWS:
            self._kinds.clear()
            self._answers.clear()
            self._kind_of.fill(_UNKNOWN)
        columns = _columns(table)
        if self._stamp != table.versions.now or self._columns != columns:
            self._forget_changed(table, columns)
        kinds: Ints = self._kind_of[rows]
        if lowest(kinds) == _UNKNOWN:
            changed, numbers = rows[kinds == _UNKNOWN], self._kinds
            self._kind_of[changed] = [numbers.setdefault(each, len(numbers)) for each in _amounts(table, changed)]
            kinds = self._kind_of[rows]
        return kinds

    def _forget_changed(self, table: NodeTable, columns: tuple[int, int]) -> None:
        """Forget of which kind the rows are that have changed; all of them where the table has other columns."""
        if self._columns != columns or len(self._kind_of) != table.capacity:
            self._columns, self._kind_of = columns, np.full(table.capacity, _UNKNOWN, dtype=np.int64)
        for log in (table.versions.nodes, table.versions.pods):
            if log.at > self._stamp:
                rows = log.since(self._stamp)
                self._kind_of[slice(None) if rows is None else rows] = _UNKNOWN
        self._stamp = table.versions.now


def _columns(table: NodeTable) -> tuple[int, int]:
    return len(table.resources), table.numbering


def _amounts(table: NodeTable, rows: Rows) -> Iterable[Hashable]:
    """What makes each of these rows alike to others."""
    return zip(
        *table.allocatable.take(rows, axis=1).tolist(),
        *table.requested.take(rows, axis=1).tolist(),
        *table.nonzero.take(rows, axis=1).tolist(),
        table.allowed_pods[rows].tolist(),
        table.pod_count[rows].tolist(),
        repeat(table.numbering, len(rows)),
        strict=True,
    )


def _looks_at_amounts(plugin: Plugin) -> bool:
    return hasattr(plugin, "looks_at_amounts") and cast(LooksAtAmounts, plugin).looks_at_amounts
