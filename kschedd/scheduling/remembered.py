"""Evaluations remembered by shape of pod: verdicts and scores of the `local` plugins, row by row.

Pods of one shape get the same verdict from a local plugin as long as the row it looks at stays as it is. So each
shape has columns of its own with the place of the first local filter that failed, its code, and the local plugins'
scores, and says which rows still hold. Before use the rows that changed meanwhile are struck out (the table keeps
logs), and only rows that are asked about and not known are evaluated.

There are two layers, because pods come and go all the time and nodes hardly ever change: plugins that read the Node
object only are asked again when that changed, and only plugins that read what the pods of a node take of it, or the
pods themselves, when a pod came or went. A new version of a pod that takes the same as before matters only to those
that read the pods themselves.

Invariant: what is remembered equals what the plugins would say now (a property test holds the two equal after any
changes). Shapes that differ only in which node they name by affinity share what is remembered, where PreFilter has
settled that. A shape is remembered from its second attempt on, and the ones not seen for longest are dropped beyond a
memory limit.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, cast

import attrs
import numpy as np
from numpy import count_nonzero  # of a boolean column, several times faster than its `all` and `any`

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.errors import KscheddError
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import CacheKey
from kschedd.framework.faults import PluginError
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.framework.status import fault_text
from kschedd.scheduling.profile import EnabledFilter, EnabledScore, EvaluationStyle, RunningProfile
from kschedd.scheduling.verdicts import PASSED, Places

if TYPE_CHECKING:
    from kschedd.scheduling.feasible import Vain

_MEMORY = 192 << 20  # bytes of columns all shapes together may take
_BYTES_A_ROW = 64
_MOST_AT_ONCE = 512  # rows evaluated besides those asked about
_FEWEST = 8  # shapes, however large the cluster
_MOST_SEEN = 4096
NODE_ONLY = frozenset(("node",))  # of what a plugin reads
UNKNOWN = -1  # in place of a plugin's place, where no verdict holds


@attrs.define(eq=False)
class PluginFault(Exception):
    """An out-of-tree plugin failed; the attempt ends with this error."""

    plugin: str
    message: str


def filter_columns(filter_: EnabledFilter, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
    """What a column filter says of the rows; None: all pass. Raises PluginFault."""
    if filter_.in_tree:
        return filter_.vector.filter_rows(state, pod, table, rows)
    try:
        return filter_.vector.filter_rows(state, pod, table, rows)
    except Exception as fault:  # a plugin's fault ends here, not in the daemon
        text = f'running "{filter_.name}" filter plugin: {fault_text(fault)}'
        raise PluginFault(filter_.name, text) from fault


def score_columns(score: EnabledScore, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
    """A column plugin's raw scores of the rows. Raises PluginFault."""
    try:
        return score.vector.score_rows(state, pod, table, rows)
    except KscheddError as wrong:  # the pod's own fault, such as terms that cannot be read
        why = wrong.why if isinstance(wrong, PluginError) else str(wrong)
        text = f'running Score plugins: plugin "{score.name}" failed with: {why}'
        raise PluginFault(score.name, text) from wrong
    except Exception as fault:  # a plugin's fault ends here, not in the daemon
        if score.in_tree:
            raise
        text = f'running Score plugins: plugin "{score.name}" failed with: {fault_text(fault)}'
        raise PluginFault(score.name, text) from fault


def out_of_range(values: Ints) -> Ints:
    """The places of final scores that are not within 0 and 100."""
    return ((values < 0) | (values > MAX_NODE_SCORE)).nonzero()[0]


def invalid_score(name: str, value: int) -> PluginFault:
    return PluginFault(
        name,
        f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid score {value}, '
        f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing",
    )


def check_range(score: EnabledScore, values: Ints) -> None:
    """Raises PluginFault where a final score is not within 0 and 100."""
    wrong = out_of_range(values)
    if len(wrong):
        raise invalid_score(score.name, int(values[wrong[0]]))


class Layer:
    """The local filters and scores of one layer, in the profile's order."""

    def __init__(self, profile: RunningProfile, of_pods: bool | None) -> None:
        """`of_pods` True: plugins that read more than the Node; False: those that do not; None: both."""

        def belongs(plugin: EnabledFilter | EnabledScore) -> bool:
            return plugin.style is EvaluationStyle.CACHED and (
                of_pods is None or (plugin.depends_on != NODE_ONLY) is of_pods
            )

        self.filters = tuple(filter_ for filter_ in profile.filters if belongs(filter_))
        self.scores = tuple(score for score in profile.scores if belongs(score))

    def judge(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, already_filtered_by: str = ""
    ) -> tuple[Places, Ints]:
        """The place of the first filter that rejects each row (PASSED: none does), and its code.

        `already_filtered_by` is a plugin that is taken to let every row pass.
        """
        failed = np.full(len(rows), PASSED, dtype=np.int16)
        codes = np.zeros(len(rows), dtype=np.int64)
        skipped = state.skip_filter
        for filter_ in self.filters:
            if filter_.name in skipped or filter_.name == already_filtered_by:
                continue
            said = filter_columns(filter_, state, pod, table, rows)
            if said is None:
                continue
            rejected = said != 0
            if count_nonzero(rejected):
                rejected &= failed == PASSED
                failed[rejected] = filter_.place
                codes[rejected] = said[rejected]
        return failed, codes

    def score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> tuple[Ints, dict[str, Ints]]:
        """Weighted sum of the scores that are final as they come, and the raw scores of those still to normalise."""
        base = np.zeros(len(rows), dtype=np.int64)
        raw = {}
        for score in self.scores:
            if score.name in state.skip_score:
                continue
            if (
                score.constant is not None
                and not score.normalizes
                and (constant := score.constant(pod, table)) is not None
            ):
                base += constant * score.weight
                continue
            values = score_columns(score, state, pod, table, rows)
            if score.normalizes:
                raw[score.name] = values
            else:
                if not score.in_tree:
                    check_range(score, values)
                base += values if score.weight == 1 else values * score.weight
        return base, raw


class Remembered:
    """One shape's columns. `base` sums the weighted scores of plugins that do not normalise; others' are in `raw`."""

    def __init__(
        self, table: NodeTable, cache_keys: tuple[Hashable, ...], skip_filter: frozenset[str], reads_pods: bool
    ) -> None:
        size = table.capacity
        self.size = size
        self.cache_keys = cache_keys
        self.skip_filter = skip_filter
        self.skip_score: frozenset[str] | None = None  # None until it was first scored
        self.node_position = table.node_changes.position
        self.pod_position = table.pod_changes.position
        self.reads_pods = reads_pods  # whether a new version of a pod matters even if it takes the same as before
        self.update_position = table.pod_updates.position
        self.failed = np.full(size, UNKNOWN, dtype=np.int16)  # UNKNOWN where no verdict holds
        self.codes = np.zeros(size, dtype=np.int64)
        self.scored = np.zeros(size, dtype=np.bool_)  # scores hold
        self.base = np.zeros(size, dtype=np.int64)
        self.raw: dict[str, Ints] = {}
        # The layer of the Node objects by itself.
        self.node_failed = np.full(size, UNKNOWN, dtype=np.int16)
        self.node_codes = np.zeros(size, dtype=np.int64)
        self.node_scored = np.zeros(size, dtype=np.bool_)
        self.node_base = np.zeros(size, dtype=np.int64)
        # Rows struck out since: evaluated in one go with the next row that has to be.
        self.unjudged: set[int] = set()
        self.unscored: set[int] = set()
        self.vain: Vain | None = None  # the last search, if it found nothing

    def strike_out(self, table: NodeTable) -> None:
        """What changed since the last time is no longer known."""
        changes = table.node_changes
        if self.node_position != changes.position:
            rows = changes.since(self.node_position)
            self.node_position = changes.position
            chosen = slice(None) if rows is None else rows
            self.failed[chosen] = self.node_failed[chosen] = UNKNOWN
            self.scored[chosen] = self.node_scored[chosen] = False
        changes = table.pod_changes
        if self.pod_position != changes.position:
            self._strike_out_pods(changes.since(self.pod_position))
            self.pod_position = changes.position
        if self.reads_pods and self.update_position != table.pod_updates.position:
            self._strike_out_pods(table.pod_updates.since(self.update_position))
            self.update_position = table.pod_updates.position

    def _strike_out_pods(self, rows: list[int] | None) -> None:
        """What runs on these rows has changed; None: on any."""
        if rows is None:
            self.failed[:] = UNKNOWN
            self.scored[:] = False
            return
        if len(rows) < 8:
            for row in rows:
                self.failed[row] = UNKNOWN
                self.scored[row] = False
        else:
            self.failed[rows] = UNKNOWN
            self.scored[rows] = False
        if len(rows) < _MOST_AT_ONCE:
            self.unjudged.update(rows)
            self.unscored.update(rows)

    def forget_scores(self, skip_score: frozenset[str]) -> None:
        self.skip_score = skip_score
        self.scored[:] = False
        self.node_scored[:] = False


@attrs.define(eq=False)
class Memory:
    """The remembered evaluations of one profile over one cluster."""

    profile: RunningProfile
    cluster: Cluster
    of_nodes: Layer = attrs.field(init=False)
    of_pods: Layer = attrs.field(init=False)
    _with_cache_key: tuple[CacheKey, ...] = attrs.field(init=False)
    _of_kin: bool = attrs.field(init=False)  # whether shapes of one kinship may share what is remembered
    _shapes: OrderedDict[int, Remembered] = attrs.field(factory=OrderedDict, init=False)
    _seen: OrderedDict[int, None] = attrs.field(factory=OrderedDict, init=False)

    def __attrs_post_init__(self) -> None:
        self.of_nodes = Layer(self.profile, False)
        self.of_pods = Layer(self.profile, True)
        filters = [p for p in self.profile.filters if p.style is EvaluationStyle.CACHED]
        self._of_kin = all(p.in_tree for p in filters)
        local = [p.plugin for p in filters]
        local += [p.plugin for p in self.profile.scores if p.style is EvaluationStyle.CACHED]
        self._with_cache_key = tuple(
            {id(plugin): cast(CacheKey, plugin) for plugin in local if hasattr(plugin, "cache_key")}.values()
        )

    def of(self, pod: Pod, state: CycleState) -> Remembered | None:
        """The pod's shape as remembered, with all that changed struck out; None if it is not remembered (yet).

        To be called once an attempt, after PreFilter.
        """
        shape = pod.shape
        # What settles where a pod may run is all that tells it from its kin.
        number = shape.kinship if state.already_filtered_by and self._of_kin else shape.number
        found = self._shapes.get(number)
        if found is None and number not in self._seen:
            self._seen[number] = None
            if len(self._seen) > _MOST_SEEN:
                self._seen.popitem(last=False)
            return None
        table = self.cluster.table
        cache_keys = tuple([plugin.cache_key(self.cluster) for plugin in self._with_cache_key])
        if (
            found is None
            or found.size != table.capacity
            or found.cache_keys != cache_keys
            or found.skip_filter != state.skip_filter
        ):
            skipped = frozenset(state.skip_filter)
            found = self._shapes[number] = Remembered(table, cache_keys, skipped, self.profile.reads_pods)
            most = max(_FEWEST, _MEMORY // (table.capacity * _BYTES_A_ROW))
            while len(self._shapes) > most:
                self._shapes.popitem(last=False)
        else:
            found.strike_out(table)
        self._shapes.move_to_end(number)
        return found

    def judge(self, found: Remembered, state: CycleState, pod: Pod, rows: Rows) -> tuple[Places, Ints]:
        """As `Layer.judge` of both layers together, but rows already known are looked up."""
        failed = found.failed[rows]
        if count_nonzero(failed == PASSED) == len(rows):
            return failed, np.zeros(len(rows), dtype=np.int64)
        unknown = failed == UNKNOWN
        if count_nonzero(unknown):
            fresh = self._with_others(rows[unknown], found.unjudged)
            self._judge_fresh(found, state, pod, fresh[found.failed[fresh] == UNKNOWN])
            failed = found.failed[rows]
        return failed, found.codes[rows]

    def _judge_fresh(self, found: Remembered, state: CycleState, pod: Pod, fresh: Rows) -> None:
        table, already_filtered_by = self.cluster.table, state.already_filtered_by
        node_failed = found.node_failed[fresh]
        unknown = node_failed == UNKNOWN
        if count_nonzero(unknown):
            stale = fresh[unknown]
            node_failed[unknown], found.node_codes[stale] = self.of_nodes.judge(
                state, pod, table, stale, already_filtered_by
            )
            found.node_failed[stale] = node_failed[unknown]
        failed, codes = self.of_pods.judge(state, pod, table, fresh, already_filtered_by)
        earlier = node_failed < failed
        if count_nonzero(earlier):
            failed[earlier] = node_failed[earlier]
            codes[earlier] = found.node_codes[fresh[earlier]]
        found.codes[fresh] = codes
        found.failed[fresh] = failed

    def score(self, found: Remembered, state: CycleState, pod: Pod, rows: Rows) -> Ints:
        """The weighted sum as of `Layer.score` of both layers together, but rows already known are looked up.

        The raw scores of these rows are in `found.raw` then.
        """
        if found.skip_score is None or found.skip_score != state.skip_score:
            found.forget_scores(frozenset(state.skip_score))
        scored = found.scored[rows]
        if count_nonzero(scored) != len(rows):
            fresh = self._with_others(rows[~scored], found.unscored)
            self._score_fresh(found, state, pod, fresh[~found.scored[fresh]])
        return found.base[rows]

    def _score_fresh(self, found: Remembered, state: CycleState, pod: Pod, fresh: Rows) -> None:
        table = self.cluster.table
        node_scored = found.node_scored[fresh]
        if count_nonzero(node_scored) != len(fresh):
            stale = fresh[~node_scored]
            base, raw = self.of_nodes.score(state, pod, table, stale)
            found.node_base[stale] = base
            self._keep_raw(found, stale, raw)
            found.node_scored[stale] = True
        base, raw = self.of_pods.score(state, pod, table, fresh)
        found.base[fresh] = base + found.node_base[fresh]
        self._keep_raw(found, fresh, raw)
        found.scored[fresh] = True

    @staticmethod
    def _keep_raw(found: Remembered, rows: Rows, raw: dict[str, Ints]) -> None:
        for name, values in raw.items():
            column = found.raw.get(name)
            if column is None:
                column = found.raw[name] = np.zeros(found.size, dtype=np.int64)
            column[rows] = values

    def _with_others(self, fresh: Rows, struck_out: set[int]) -> Rows:
        """The rows that have to be evaluated now, and others that soon will: a few hundred cost hardly more than one.

        Those struck out lately, and where hardly any is asked about (pods that can go to one node only) its neighbours.
        Some of them may be known; none is there twice.
        """
        if len(fresh) >= _MOST_AT_ONCE:
            return fresh
        table = self.cluster.table
        wanted = np.zeros(table.capacity, dtype=np.bool_)
        wanted[list(struck_out)] = True
        if len(fresh) < 4 and len(struck_out) < 4:
            first = int(fresh[0])
            neighbours = slice(first, first + _MOST_AT_ONCE // 2)
            wanted[neighbours] = table.alive[neighbours]
        wanted[fresh] = True
        struck_out.clear()
        return wanted.nonzero()[0]
