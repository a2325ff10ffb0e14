"""Search for feasible nodes: which nodes are checked, in which order, and when to stop.

Nodes are visited in the order of the table (round robin over zones), from where the last pod's search ended, until as
many feasible ones are found as percentageOfNodesToScore asks for. The search takes windows of rows at a
time, so its cost follows the number of nodes checked, not the size of the cluster; the outcome is that of
visiting one node after the other.

A full search without a feasible node is cached as a whole while nothing changes: unschedulable pods cost little.

Source: Kubernetes v1.34, scheduler/schedule_one.go (findNodesThatPassFilters, numFeasibleNodesToFind).
"""

from collections.abc import Callable
from functools import lru_cache, partial

import attrs
import numpy as np
from numpy import count_nonzero  # of a boolean column, several times faster than its `all` and `any`

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.cache.versions import Versions
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.normalize import lowest
from kschedd.framework.status import Status, unresolvable
from kschedd.scheduling.evaluation_cache import UNKNOWN, CachedEvaluation, EvaluationCache
from kschedd.scheduling.expected_rows import ExpectedRows
from kschedd.scheduling.filter_pass import FilterPass
from kschedd.scheduling.filters import Filters
from kschedd.scheduling.node_verdicts import NodeVerdicts, NodeVerdictsEntry
from kschedd.scheduling.nominated_pods import NONE_REJECTED, NominatedPodFilter
from kschedd.scheduling.nominations import NominatedByRow
from kschedd.scheduling.profile import EnabledFilter
from kschedd.scheduling.verdicts import PASSED, PASSED_ALL, Places, Verdicts
from kschedd.scheduling.work import Work
from kschedd.values import fast_frozen

Search = Work["Found"]

_MOST_KINDS = 64  # sets of skipped filters
_FEWEST = 100  # nodes to find, at least
_PASSED_ONE = np.array([PASSED], dtype=np.int16), np.zeros(1, dtype=np.int64)


@fast_frozen(eq=False)
class Found:
    """Feasible rows in visiting order, and the verdicts on all that were visited."""

    rows: Rows
    visited: int
    verdicts: Verdicts
    error: Status | None = None  # a filter failed on some node
    without_pods: bool = False  # an extender answered with Node objects, which are scored as they are


@attrs.frozen(eq=False)
class FailedSearch:
    """Cached full search with no feasible node; valid until something changes."""

    found: Found
    order: Rows
    start: int | None  # None: nominated pods counted, so only the extent of the search is reusable
    stamp: int

    def holds(self, order: Rows, start: int, versions: Versions, reads_pods: bool) -> bool:
        """Whether it is still valid. `reads_pods`: a pod update matters even if the requests are unchanged."""
        if self.order is not order or self.start != start or versions.rows_changed(self.stamp):
            return False
        return not reads_pods or versions.pod_updates.at <= self.stamp


@lru_cache(64)
def nodes_to_find(nodes: int, percentage: int) -> int:
    """How many feasible nodes end the search among `nodes`; `percentage` 0 is adaptive."""
    if nodes < _FEWEST:
        return nodes
    if percentage == 0:
        percentage = max(50 - nodes // 125, 5)
    return max(nodes * min(percentage, 100) // 100, _FEWEST)


@lru_cache(64)
def narrowed_status(plugins: tuple[str, ...]) -> Status:
    """The status of the nodes that PreFilter of these plugins left out."""
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]")


@attrs.define(eq=False)
class NodeSearch:
    """Searches the nodes of a cluster with a profile's filters; `cache` None: nothing is cached."""

    filters: Filters
    cache: EvaluationCache | None
    nominated_pods: NominatedPodFilter = attrs.field(init=False)
    _table: NodeTable = attrs.field(init=False)
    _versions: Versions = attrs.field(init=False)
    _reads_pods: bool = attrs.field(init=False)  # whether a pod update matters that leaves requests unchanged
    expected: ExpectedRows = attrs.field(factory=ExpectedRows, init=False)  # for so many feasible ones
    _node_verdicts: NodeVerdicts | None = attrs.field(init=False)  # None: nothing is kept
    # Of those that these pass; by the filters that PreFilter skips: others may reject few nodes, or most of a zone's.
    _expected_open: dict[frozenset[str], ExpectedRows] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.nominated_pods = NominatedPodFilter(self.filters)
        self._table = self.filters.cluster.table
        self._versions = self._table.versions
        self._reads_pods = self.filters.profile.reads_pods
        profile, cluster = self.filters.profile, self.filters.cluster
        self._node_verdicts = None if self.cache is None else NodeVerdicts(profile, cluster)

    def run(
        self,
        state: CycleState,
        pod: Pod,
        order: Rows,
        start: int,
        wanted: int,
        nominated: NominatedByRow,
        cached: CachedEvaluation | None,
    ) -> Search:
        """Visit `order` from `start`, round the end, until `wanted` rows fit. Yields shards of per-node work."""
        by_itself = self.filters.row_by_row(state, pod)
        if by_itself and cached is not None and not nominated:
            return self.cached(state, pod, order, start, wanted, cached)
        if cached is None and not nominated and self._node_verdicts is not None and order is self._table.order:
            known = self._node_verdicts.of(state, pod)
            if known is not None:
                return (yield from self._among_passing(state, pod, start, wanted, known, self._node_verdicts.others))
        total = len(order)
        # The entry in which the outcome may be cached for later searches.
        kept = cached if by_itself and order is self._table.order else None
        failed = None if kept is None else kept.failed_search
        batches: list[FilterPass] = []
        explicit_status: dict[int, Status] = {}
        lacking, visited = wanted, 0
        size = total if failed is not None else self.expected.for_passing(wanted)
        while lacking > 0 and visited < total:
            first = (start + visited) % total
            rows = order[first : first + min(size, total - visited)]
            passed: FilterPass
            if cached is None and not nominated:
                passed = yield from self.filters.run(state, pod, rows, explicit_status)
            else:
                passed = yield from self._look_up(state, pod, rows, nominated, cached, by_itself, explicit_status)
            passed.cut(lacking)
            batches.append(passed)
            lacking -= len(passed.passing)
            visited += len(passed.rows)
            size = max(size, 2 * len(passed.rows))
        result = self._found(state, pod, order, wanted, batches, explicit_status)
        if kept is not None:
            kept.failed_search = None
            if not len(result.rows):
                searched_from = None if nominated else start
                kept.failed_search = FailedSearch(result, order, searched_from, self._versions.now)
        return result

    def _among_passing(
        self,
        state: CycleState,
        pod: Pod,
        start: int,
        wanted: int,
        known: NodeVerdictsEntry,
        others: tuple[EnabledFilter, ...],
    ) -> Search:
        """As `run`, of the whole table, where it is known which rows pass the first filters: only these are visited."""
        order, rows, places = known.order, known.rows, known.places
        total, first = len(order), places.searchsorted(start).item()
        passes: list[FilterPass] = []
        explicit_status: dict[int, Status] = {}
        lacking, tried = wanted, 0
        skipped = frozenset(state.skip_filter)
        expected = self._expected_open.get(skipped)
        if expected is None:
            if len(self._expected_open) >= _MOST_KINDS:
                self._expected_open.clear()
            expected = self._expected_open[skipped] = ExpectedRows()
        size = expected.for_passing(wanted)
        while lacking > 0 and tried < len(rows):
            begin, size = (first + tried) % len(rows), min(size, len(rows) - tried)
            some = rows[begin : begin + size]
            if len(some) < size:  # round the end
                some = np.concatenate((some, rows[: size - len(some)]))
            passed = yield from self.filters.run(state, pod, some, explicit_status, only=others)
            passed.cut(lacking)
            passes.append(passed)
            lacking -= len(passed.passing)
            tried += len(passed.rows)
            # As many as will do at this rate, and twice as many at most.
            size = min(tried * lacking // max(wanted - lacking, 1) + _FEWEST, 2 * tried)
        visited = total
        if lacking == 0 and tried:
            visited = (places.item((first + tried - 1) % len(places)) - start) % total + 1
        rows = order[start : start + visited]
        if len(rows) < visited:  # round the end
            rows = np.concatenate((rows, order[: visited - len(rows)]))
        found = passes[0].passing if len(passes) == 1 else np.concatenate([order[:0], *(one.passing for one in passes)])
        if wanted > 1 and lacking == 0:
            expected.learn(tried, wanted)
            self.expected.learn(visited, wanted)
        failed, codes = known.failed, known.codes

        def columns() -> tuple[Places, Ints]:
            of_nodes, of_others = (failed[rows], codes[rows]), _together(passes)
            at = (places.take(np.arange(first, first + tried), mode="wrap") - start) % total
            of_nodes[0][at], of_nodes[1][at] = of_others
            return of_nodes

        return self._outcome(state, pod, rows, found, explicit_status, columns)

    def cached(
        self, state: CycleState, pod: Pod, order: Rows, start: int, wanted: int, cached: CachedEvaluation
    ) -> Found:
        """As `run`, where no filter that takes part reads more than the row it judges and no pod is nominated."""
        total, table, cache = len(order), self._table, self.cache
        assert cache is not None, "where there is an entry, there is a cache"
        # The entry in which the outcome may be cached for later searches.
        kept = cached if order is table.order else None
        failed_search = None if kept is None else kept.failed_search
        if isinstance(failed_search, FailedSearch) and failed_search.holds(
            order, start, self._versions, self._reads_pods
        ):
            cache.use.hits += failed_search.found.visited
            return failed_search.found
        if total == 1 and cached.failed[order[0]] == PASSED:
            # Most pods pinned to one node end here: the cached verdict on that node is all they need.
            cache.use.hits += 1
            return Found(order, 1, Verdicts(table, self.filters.profile.filters, state, pod, order, *_PASSED_ONE))
        size = min(total if failed_search is not None else self.expected.for_passing(wanted), total)
        result = self._known(state, pod, order, start, size, wanted, cached) if wanted > 1 and total else None
        if result is None:
            result = self._judged(state, pod, order, start, size, wanted, cached)
        if kept is not None:
            kept.failed_search = None
            if not len(result.rows):
                kept.failed_search = FailedSearch(result, order, start, self._versions.now)
        return result

    def _known(
        self, state: CycleState, pod: Pod, order: Rows, start: int, size: int, wanted: int, cached: CachedEvaluation
    ) -> Found | None:
        """The search where the entry has the verdict on each row that it visits, tried with `size` rows first, and more
        where they are too few; None where a verdict is lacking."""
        table, filters = self._table, self.filters.profile.filters
        assert self.cache is not None, "where there is an entry, there is a cache"
        while True:
            rows = order[start : start + size]
            if len(rows) < size:  # round the end
                rows = np.concatenate((rows, order[: size - len(rows)]))
            at = table.places(rows)
            failed = cached.failed[at]
            passed = failed == PASSED_ALL
            if size >= wanted and count_nonzero(passed) == size:
                # Most pods of which there are many end here: there is room wherever they are looked for.
                found = rows = rows[:wanted]
                verdicts = Verdicts(table, filters, state, pod, rows, None, None, compute=partial(_all_passed, wanted))
                break
            passing = passed.nonzero()[0]
            if len(passing) >= wanted:
                end, passing = passing.item(wanted - 1) + 1, passing[:wanted]
            elif size < len(order) and lowest(failed) != UNKNOWN:
                size = min(2 * size, len(order))
                continue
            else:
                end = size
            if lowest(failed[:end]) == UNKNOWN:
                return None
            found, rows = rows[passing], rows[:end]
            # What the entry holds changes, what a search has found does not.
            if isinstance(at, slice):
                failed, codes = failed[:end].copy(), cached.codes[at][:end].copy()
            else:
                failed, codes = failed[:end], cached.codes[rows]
            verdicts = Verdicts(table, filters, state, pod, rows, failed, codes)
            break
        if len(found) == wanted:
            self.expected.learn(len(rows), wanted)
        self.cache.use.hits += len(rows)
        return Found(found, len(rows), verdicts)

    def _judged(
        self, state: CycleState, pod: Pod, order: Rows, start: int, size: int, wanted: int, cached: CachedEvaluation
    ) -> Found:
        """The search with the verdicts that the entry lacks, some `size` rows at a time."""
        total, cache = len(order), self.cache
        assert cache is not None, "where there is an entry, there is a cache"
        batches: list[FilterPass] = []
        lacking, visited = wanted, 0
        while lacking > 0 and visited < total:
            first = (start + visited) % total
            rows = order[first : first + min(size, total - visited)]
            passed = FilterPass.of_columns(rows, *cache.judge(cached, state, pod, rows))
            passed.cut(lacking)
            batches.append(passed)
            lacking -= len(passed.passing)
            visited += len(passed.rows)
            size = max(size, 2 * len(passed.rows))
        return self._found(state, pod, order, wanted, batches, {})

    def _found(
        self,
        state: CycleState,
        pod: Pod,
        order: Rows,
        wanted: int,
        batches: list[FilterPass],
        explicit_status: dict[int, Status],
    ) -> Found:
        """What the batches come to, of a search for `wanted` nodes."""
        rows, found = order[:0], order[:0]
        if batches:
            rows, found = batches[0].rows, batches[0].passing
        if len(batches) > 1:
            rows = np.concatenate([batch.rows for batch in batches])
            found = np.concatenate([batch.passing for batch in batches])
        if wanted > 1 and len(found) >= wanted:
            self.expected.learn(len(rows), wanted)
        return self._outcome(state, pod, rows, found, explicit_status, lambda: _together(batches))

    def _outcome(
        self,
        state: CycleState,
        pod: Pod,
        rows: Rows,
        found: Rows,
        explicit_status: dict[int, Status],
        columns: Callable[[], tuple[Places, Ints]],
    ) -> Found:
        """What is found, with the verdicts on all visited rows."""
        if explicit_status:
            there = set(rows.tolist())
            explicit_status = {row: status for row, status in explicit_status.items() if row in there}
        verdicts = Verdicts(
            self._table,
            self.filters.profile.filters,
            state,
            pod,
            rows,
            None,
            None,
            explicit_status,
            compute=columns,
        )
        broken = next((s for s in explicit_status.values() if not s.rejected), None)
        return Found(found, len(rows), verdicts, broken)

    def _look_up(
        self,
        state: CycleState,
        pod: Pod,
        rows: Rows,
        nominated: NominatedByRow,
        cached: CachedEvaluation | None,
        by_itself: bool,
        explicit_status: dict[int, Status],
    ) -> Work[FilterPass]:
        """Verdicts on the rows, from the cache and from the other filters, nominated pods included."""
        if cached is None:
            failed, codes = self.filters.local.judge(state, pod, self._table, rows)
        else:
            assert self.cache is not None
            failed, codes = self.cache.judge(cached, state, pod, rows)
        rejected = NONE_REJECTED
        if nominated:
            rejected = self.nominated_pods.rejected(state, pod, rows, nominated, cached)
        if not by_itself:
            if len(rejected.places):
                # A row rejected with its nominated pods is not checked without them: no filter is called on it again.
                places = np.delete(np.arange(len(rows)), rejected.places)
                some_failed, some_codes = failed[places], codes[places]
                table = self._table
                said = yield from self.filters.run_others(state, pod, table, rows[places], some_failed, some_codes)
                failed[places], codes[places] = some_failed, some_codes
            else:
                said = yield from self.filters.run_others(state, pod, self._table, rows, failed, codes)
            explicit_status.update(said)
        failed[rejected.places], codes[rejected.places] = rejected.failed, rejected.codes
        explicit_status.update(rejected.explicit_status)
        return FilterPass.of_columns(rows, failed, codes)


def _all_passed(count: int) -> tuple[Places, Ints]:
    """The columns of so many rows that all passed."""
    return np.full(count, PASSED, dtype=np.int16), np.zeros(count, dtype=np.int64)


def _together(batches: list[FilterPass]) -> tuple[Places, Ints]:
    """The columns of all batches, concatenated."""
    if len(batches) == 1:
        return batches[0].columns()
    columns = [batch.columns() for batch in batches]
    if not columns:
        return np.zeros(0, dtype=np.int16), np.zeros(0, dtype=np.int64)
    return np.concatenate([failed for failed, _ in columns]), np.concatenate([codes for _, codes in columns])
