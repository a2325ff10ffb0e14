"""Repetition: attempts for pods like one that was attempted before, without the calls whose answers are known.

Most pods come in numbers, from one template: the attempts for them differ in the rows that are visited and in the pods
that came to these rows, and in nothing else. Where that holds, what they have in common is kept from one attempt to the
next (`patterns`), and the attempt is a search through the cached evaluation, or a part of one that was made ahead
(`lookahead`), and a choice.

Invariant: the result is that of a whole attempt. Where a search finds fewer than two nodes (no node, of a pod that
names one) the whole attempt is made instead; so it is with nominated pods, for pods that are nominated themselves, with
extenders, and step by step.

Owns the patterns, and by signature what lies ahead and at which pace attempts come.
"""

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import PreFilterResult
from kschedd.scheduling.counting_plugins import CountingPlugins
from kschedd.scheduling.evaluation_cache import EvaluationCache
from kschedd.scheduling.lookahead import MOST_UNKNOWN, ChosenWindow, Lookahead, Pace, PassingWindow, VisitingOrder
from kschedd.scheduling.metrics import NoTimes, PointTimes
from kschedd.scheduling.node_local_plugins import PluginFault
from kschedd.scheduling.node_search import Found, NodeSearch, narrowed_status
from kschedd.scheduling.patterns import Pattern, Patterns
from kschedd.scheduling.profile import Framework
from kschedd.scheduling.recently_used import RecentlyUsed
from kschedd.scheduling.verdicts import PASSED, PASSED_ALL, Verdicts
from kschedd.values import fast_frozen

_MOST_PACES = 16
_MOST_NAMED = 64  # attempts for pods that name their nodes, in a run
_MOST_COUNTED = 16  # and for pods whose plugins count pods: some 100 microseconds each
_LONG_AGO = 1 << 32


@fast_frozen(eq=False)
class Repeated:
    """What such an attempt came to. `totals` None: one node was found, which needs no score."""

    state: CycleState
    found: Found
    totals: Ints | None = None
    score: int = 0  # the highest total
    best: Rows | None = None  # the rows that have it


@attrs.define(eq=False)
class _TemplateRun:
    """The attempts of a run for pods of one template, which take windows of what lies ahead."""

    pod: Pod
    pattern: Pattern
    pace: Pace
    ahead: Lookahead
    numbers: list[int] = attrs.field(factory=list, init=False)  # of the attempts within the run
    firsts: list[int] = attrs.field(factory=list, init=False)
    visited: list[int] = attrs.field(factory=list, init=False)

    def take(self, number: int, pod: Pod, start: int, wanted: int, most: int) -> int:
        """The window of one more attempt: how many rows it has, at most `most`; 0 if it is not known."""
        if pod.owner != self.pattern.owner:
            return 0
        window = self.ahead.window_at(start, wanted)
        if window is None or window[1] > most:
            return 0
        first, visited = window
        self.ahead.passed(start, visited)
        self.numbers.append(number)
        self.firsts.append(first)
        self.visited.append(visited)
        return visited

    def chosen(self, wanted: int, times: PointTimes | NoTimes) -> Iterator[tuple[int, ChosenWindow]]:
        """By the number of the attempt, what it chooses from."""
        if not self.numbers:
            return iter(())
        ahead = self.ahead
        ahead.entry.failed_search = None
        chosen = ahead.chosen(self.pattern.state, self.pod, wanted, self.firsts, self.visited)
        times.repeated_several(len(chosen), ahead.judge_s, ahead.score_s)
        return zip(self.numbers, chosen, strict=True)


@attrs.define(eq=False)
class Repetition:
    """The patterns of one profile on one cluster."""

    _profile: Framework
    _cluster: SchedulerCache
    _cache: EvaluationCache
    _search: NodeSearch
    _patterns: Patterns = attrs.field(init=False)
    _paces: RecentlyUsed[int, Pace] = attrs.field(factory=RecentlyUsed, init=False)  # by signature
    _attempts: int = attrs.field(default=0, init=False)
    _visiting: VisitingOrder | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._patterns = Patterns(self._profile, self._cluster, self._search.filters)

    def learn(self, pod: Pod, state: CycleState, narrowed: PreFilterResult | None) -> None:
        """See `Patterns.learn`."""
        self._patterns.learn(pod, state, narrowed)

    def attempt(self, pod: Pod, start: int, wanted: int, times: PointTimes | NoTimes) -> Repeated | None:
        """The attempt's outcome; None to make a whole attempt instead."""
        pattern = self._patterns.of(pod)
        if pattern is None:
            return None
        start %= len(self._cluster.table.order)
        if pattern.counting is not None:
            state = _state_to_change(pattern)
            window = self._counted(pod, state, pattern, pattern.counting, start, wanted, times)
            if window is None:
                return None
            filters = self._profile.filters
            verdicts = Verdicts(
                self._cluster.table, filters, state, pod, window.rows, None, None, compute=window.columns
            )
            highest, best = _best(window)
            return Repeated(state, Found(window.feasible, len(window.rows), verdicts), window.totals, highest, best)
        common = pattern.state
        state = CycleState(common.data.copy(), common.skip_filter, common.already_filtered_by, common.skip_score)
        if common.already_filtered_by:
            return self._on_named_node(pod, state, times)
        return self._search_for(pod, state, pattern, start, wanted, times)

    def attempt_each(
        self, pods: Sequence[Pod], start: int, wanted: int, times: PointTimes | NoTimes
    ) -> Iterator[ChosenWindow]:
        """As `attempt` of the first of these pods, as long as there is an outcome. Each search begins where the one
        before it ended; the pod is on its node, and nothing else has changed, when the next one is asked for.

        The attempts for pods of one template share a state.
        """
        nodes = len(self._cluster.table.order)
        states: dict[Pattern, tuple[CycleState, int]] = {}  # and where the template's latest search began
        for pod in pods:
            pattern = self._patterns.of(pod)
            if pattern is None or pattern.counting is None:
                made = self.attempt(pod, start, wanted, times)
                if made is None:
                    return
                found, best = made.found, made.found.rows if made.best is None else made.best
                score = None if made.totals is None else made.score
                chosen = ChosenWindow(made.state, found.visited, found.rows, made.totals, score, best)
            else:
                state, before = states.get(pattern) or (_state_to_change(pattern), start - nodes)
                states[pattern] = state, start
                within_a_round = start - before < nodes
                window = self._counted(
                    pod, state, pattern, pattern.counting, start % nodes, wanted, times, unchanged=within_a_round
                )
                if window is None:
                    return
                chosen = ChosenWindow(state, len(window.rows), window.feasible, window.totals, *_best(window))
            start += chosen.visited
            yield chosen

    # -- several at once ----------------------------------------------------------------------------------------

    def known(self, pod: Pod, wanted: int) -> int:
        """About how many attempts may be made in one run, beginning with one for a pod like this."""
        pattern = self._patterns.learnt(pod)
        if pattern is None:
            return 0
        if pattern.state.already_filtered_by:
            return _MOST_NAMED
        pace = self._paces.get(pod.signature.id)
        if pace is None:
            return 0
        if pattern.counting is not None:
            return _MOST_COUNTED if pace.ahead is not None else 0
        nodes = len(self._cluster.table.order)
        if pace.ahead is not None and pace.ahead.rows_left >= wanted and not pace.short(nodes):
            return pace.ahead.rows_left // wanted
        return pace.rows_wanted(wanted, nodes) // wanted if wanted > 1 else 0

    def run(self, pods: Sequence[Pod], start: int, wanted: int, times: PointTimes | NoTimes) -> Sequence[ChosenWindow]:
        """What the attempts for the first of these pods come to, made one right after the other, as far as it is known,
        or may be known at once. No two of the pods come to one node. Empty: the next attempt has to be made by itself.
        """
        pattern = self._patterns.of(pods[0])
        if pattern is None or pattern.counting is not None:
            return ()
        if pattern.state.already_filtered_by:
            return self._on_named_nodes(pods, pattern, times)
        nodes = len(self._cluster.table.order)
        place, left = start % nodes, nodes  # what was visited may have changed by these attempts
        by_template: dict[int, _TemplateRun] = {}
        found: dict[int, ChosenWindow] = {}
        for number, pod in enumerate(pods):
            run = by_template.get(pod.signature.id)
            if run is None:
                run = self._template_run(pod, place, wanted, left, times)
                if run is None:
                    break
                by_template[pod.signature.id] = run
            visited = run.take(number, pod, place, wanted, left)
            if not visited:
                break
            self._attempts += 1
            run.pace.attempted(self._attempts)
            place, left = (place + visited) % nodes, left - visited
        for run in by_template.values():
            found.update(run.chosen(wanted, times))
        return [found[number] for number in range(len(found))]

    def _template_run(
        self, pod: Pod, start: int, wanted: int, left: int, times: PointTimes | NoTimes
    ) -> _TemplateRun | None:
        """For attempts for pods like this one, the first of which begins its search there; None if nothing is known."""
        pattern, pace = self._patterns.of(pod), self._paces.get(pod.signature.id)
        if pattern is None or pattern.counting is not None or pace is None or wanted < 2:
            return None
        ahead = pace.ahead
        if ahead is None or pace.short(left) or not self._holds(ahead, pattern, start, wanted):
            try:
                ahead = self._look_ahead(pod, pattern, pace, start, wanted, times)
            except PluginFault:
                return None
        return None if ahead is None else _TemplateRun(pod, pattern, pace, ahead)

    def _holds(self, ahead: Lookahead, pattern: Pattern, start: int, wanted: int) -> bool:
        """Whether there is a window from there on that may be taken."""
        if ahead.pattern is not pattern or not ahead.reaches(start, self._cluster.table, self._profile.reads_pods):
            return False
        return ahead.window_at(start, wanted) is not None and ahead.entry.cache_keys == self._cache.cache_keys()

    def _on_named_nodes(
        self, pods: Sequence[Pod], pattern: Pattern, times: PointTimes | NoTimes
    ) -> Sequence[ChosenWindow]:
        """The first of these pods that are of the pattern, on the nodes that they name."""
        began, state, template = times.start(), pattern.state, pods[0].signature.signature_ignoring_node
        cached = self._cache.of(pods[0], state)
        if cached is None:
            return ()
        row_of, failed = self._cluster.table.row_of, cached.failed
        rows: dict[int, None] = {}
        for pod in pods:
            row = row_of.get(pod.signature.spec.required_node or "")
            if row is None or row in rows or failed.item(row) != PASSED:
                break
            if pod.signature.signature_ignoring_node != template or pod.owner != pattern.owner:
                break
            rows[row] = None
        if not rows:
            return ()
        self._cache.use.hits += len(rows)
        times.repeated_several(len(rows), (times.start() - began) / len(rows))
        feasible = np.array(list(rows), dtype=np.int64).reshape(-1, 1)
        return [ChosenWindow(state, 1, row, None, None, row) for row in feasible]

    def _on_named_node(self, pod: Pod, state: CycleState, times: PointTimes | NoTimes) -> Repeated | None:
        began = times.start()
        row = self._cluster.table.row_of.get(pod.signature.spec.required_node or "")
        cached = None if row is None else self._cache.of(pod, state)
        if cached is None:
            return None
        found = self._search.cached(state, pod, np.array([row], dtype=np.int64), 0, 1, cached)
        if not len(found.rows):
            return None
        found.verdicts.default_status = narrowed_status((state.already_filtered_by,))
        times.repeated(times.start() - began)
        return Repeated(state, found)

    def _search_for(
        self, pod: Pod, state: CycleState, pattern: Pattern, start: int, wanted: int, times: PointTimes | NoTimes
    ) -> Repeated | None:
        pace, table = self._pace(pod), self._cluster.table
        try:
            for ahead in self._aheads(pod, pattern, pace, start, wanted, times):
                repeated = self._taken(pod, state, ahead, start, wanted, times)
                if repeated is not None:
                    return repeated
            pace.over()
            began = times.start()
            cached = self._cache.of(pod, state, many=True)
            if cached is None:
                return None
            found = self._search.cached(state, pod, table.order, start, wanted, cached)
            if len(found.rows) < 2:
                return None
            searched = times.start()
            totals = self._cache.score(cached, state, pod, found.rows)
        except PluginFault:
            return None
        totals += pattern.constant
        for score in pattern.normalized:
            totals += score.extensions.normalize(state, pod, cached.raw[score.name][found.rows]) * score.weight
        times.repeated(searched - began, times.start() - searched)
        highest = totals.item(totals.argmax())
        return Repeated(state, found, totals, highest, found.rows[totals == highest])

    def _counted(
        self,
        pod: Pod,
        state: CycleState,
        pattern: Pattern,
        counting: CountingPlugins,
        start: int,
        wanted: int,
        times: PointTimes | NoTimes,
        *,
        unchanged: bool = False,
    ) -> PassingWindow | None:
        """An attempt in which these plugins are asked anew, up to the totals. `unchanged`: since the latest one for
        such a pod, searches have not come round, and nothing has changed but nodes that they have passed."""
        pace, began = self._pace(pod), times.start()
        prepared, window = False, None
        try:
            for ahead in self._aheads(pod, pattern, pace, start, wanted, times, unchanged=unchanged):
                prepared = prepared or counting.pre_filter(state, pod)
                if not prepared:
                    return None
                window = ahead.take_passing(state, pod, start, wanted, counting, pace.expected.for_passing(wanted))
                if window is not None:
                    break
        except PluginFault:
            return None
        if window is None or not counting.pre_score(state, pod, window.feasible):
            pace.over()
            return None
        searched = times.start()
        pace.expected.learn(window.tried, wanted)
        counting.add_scores(window.totals, state, pod, window.feasible)
        times.repeated(searched - began, times.start() - searched)
        return window

    # -- looking ahead ------------------------------------------------------------------------------------------

    def _pace(self, pod: Pod) -> Pace:
        """That of the pod's signature, for one more attempt."""
        number, paces = pod.signature.id, self._paces
        self._attempts += 1
        pace = paces.get(number)
        if pace is None:
            pace = paces.keep(number, Pace(self._attempts - _LONG_AGO), _MOST_PACES)
        elif pace.apart > 1:
            paces.move_to_end(number)
        pace.attempted(self._attempts)
        return pace

    def _aheads(
        self,
        pod: Pod,
        pattern: Pattern,
        pace: Pace,
        start: int,
        wanted: int,
        times: PointTimes | NoTimes,
        *,
        unchanged: bool = False,
    ) -> Iterator[Lookahead]:
        """What is known ahead of `start`, if anything; then, where that is too little, what is found out now."""
        if wanted < 2:
            return
        if pace.ahead is not None and (unchanged or self._holds(pace.ahead, pattern, start, wanted)):
            yield pace.ahead
        ahead = self._look_ahead(pod, pattern, pace, start, wanted, times)
        if ahead is not None:
            yield ahead

    def _look_ahead(
        self, pod: Pod, pattern: Pattern, pace: Pace, start: int, wanted: int, times: PointTimes | NoTimes
    ) -> Lookahead | None:
        """Find out what lies ahead of `start`, as far as it may pay; None if it may not. Raises PluginFault."""
        table, cache, began, state = self._cluster.table, self._cache, times.start(), pattern.state
        cached = None if pace.ahead is None else cache.of(pod, state, many=True)
        if pace.ahead is not None and cached is not None and pace.ahead.renewed(pattern, cached, table, start):
            windows = max(1, len(table.order) // wanted)
            pace.ahead.judge_s, pace.ahead.score_s = (times.start() - began) / windows, 0.0
            return pace.ahead
        pace.over()
        if len(table.order) > MOST_UNKNOWN:
            known = cached is not None and cached.unknown(table.order) <= MOST_UNKNOWN
            pace.most_rows = len(table.order) if known else MOST_UNKNOWN
        many = pace.rows_wanted(wanted, len(table.order))
        if many and cached is None:
            cached = cache.of(pod, state, many=True)
        if not many or cached is None:
            return None
        if self._visiting is None or self._visiting.order is not table.order:
            self._visiting = VisitingOrder(table.order)
        rows = self._visiting.rows_from(start, self._search.expected.for_passing(many))
        failed, codes = cache.judge(cached, state, pod, rows)
        passing = (failed == PASSED_ALL).nonzero()[0]
        feasible = rows if len(passing) == len(rows) else rows[passing]
        if len(passing):
            self._search.expected.learn(len(rows), len(passing))
        judged = times.start()
        cache.score(cached, state, pod, feasible)
        windows = max(1, len(feasible) // wanted)
        pace.ahead = Lookahead(
            pattern,
            cached,
            self._visiting,
            start,
            rows,
            failed,
            codes,
            passing,
            feasible,
            table.versions.now,
            (judged - began) / windows,
            (times.start() - judged) / windows,
        )
        return pace.ahead

    def _taken(
        self, pod: Pod, state: CycleState, ahead: Lookahead, start: int, wanted: int, times: PointTimes | NoTimes
    ) -> Repeated | None:
        """The outcome of an attempt whose window lies ahead and is known."""
        window = ahead.take(state, pod, start, wanted)
        if window is None:
            return None
        ahead.entry.failed_search = None
        times.repeated(ahead.judge_s, ahead.score_s)
        filters = self._profile.filters
        verdicts = Verdicts(self._cluster.table, filters, state, pod, window.rows, window.failed, window.codes)
        found = Found(window.feasible, len(window.rows), verdicts)
        return Repeated(state, found, window.totals, window.score, window.best)


def _best(window: PassingWindow) -> tuple[int, Rows]:
    """The highest total and the rows that have it."""
    totals = window.totals
    highest: int = totals.item(totals.argmax())
    return highest, window.feasible[totals == highest]


def _state_to_change(pattern: Pattern) -> CycleState:
    """The pattern's state, for attempts in which the plugins that count pods write to it."""
    common = pattern.state
    return CycleState(
        common.data.copy(), common.skip_filter.copy(), common.already_filtered_by, common.skip_score.copy()
    )
