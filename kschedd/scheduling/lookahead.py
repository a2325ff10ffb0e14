"""Lookahead: the searches of the next pods of a signature, made at once.

A search visits nodes until enough of them fit, and the next search begins where that one ended. So the pods of one
template take one window of nodes after the other, and in a large cluster nothing that a pod changes on its node matters
to the pods after it until a search has come round to that node. The nodes ahead are therefore judged and scored
together, and each attempt takes its window of them: columns are read once, not once for each pod.

Invariant: a window that is taken is what a search and the scores would come to now. Of the rows that have changed,
those that were passed do not matter, nobody goes back, and nothing is taken that reaches as far as another. Nothing at
all is taken once something else has changed that it depends on: the pattern, the order of visiting, the cache keys of
plugins; where a plugin reads pods that are merely updated, such an update.

Looking ahead pays where pods of the signature come often enough. How far it goes grows with the windows that were
taken: `Pace` says how far.
"""

from collections.abc import Callable, Sequence
from typing import Final, cast

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import NormalizesEach
from kschedd.scheduling.counting_plugins import CountingPlugins
from kschedd.scheduling.evaluation_cache import CachedEvaluation
from kschedd.scheduling.expected_rows import ExpectedRows
from kschedd.scheduling.profile import EnabledScore
from kschedd.scheduling.verdicts import Places
from kschedd.values import fast_frozen

_MOST_WINDOWS: Final = 64
_FEWEST_WINDOWS: Final = 2
_MOST_ROWS: Final = 20_000  # feasible ones: more take milliseconds where none of them has been judged yet
_LONGEST_PAUSE: Final = 64  # attempts


@fast_frozen(eq=False)
class Window:
    """What one search visits, with the verdicts, what of it is feasible, and the best of that."""

    rows: Rows
    failed: Places
    codes: Ints
    feasible: Rows
    totals: Ints
    score: int  # the highest total
    best: Rows  # the rows that have it


@fast_frozen(eq=False)
class ChosenWindow:
    """A window of which no more is wanted than what was chosen from."""

    state: CycleState  # which others share
    visited: int
    feasible: Rows
    totals: Ints
    score: int
    best: Rows


@fast_frozen(eq=False)
class PassingWindow:
    """What one search visits, what of it is feasible, and the totals of that but for those of plugins that count pods;
    `columns` gives the verdicts."""

    rows: Rows
    columns: Callable[[], tuple[Places, Ints]]
    tried: int  # how many of the rows these plugins were asked about
    feasible: Rows
    totals: Ints


@attrs.define(eq=False)
class VisitingOrder:
    """The order in which nodes are visited, and the place of each row in it."""

    order: Rows
    places: Ints = attrs.field(init=False)  # by row

    def __attrs_post_init__(self) -> None:
        self.places = np.zeros(int(self.order.max(initial=0)) + 1, dtype=np.int64)
        self.places[self.order] = np.arange(len(self.order))

    def rows_from(self, start: int, count: int) -> Rows:
        """The next so many rows from there on, at most all: round the end of the order."""
        rows = self.order[start : start + count]
        rest = min(count, len(self.order)) - len(rows)
        return rows if not rest else np.concatenate((rows, self.order[:rest]))


@attrs.define(eq=False)
class Lookahead:
    """The nodes from `start` on, judged and scored for one signature. Places are counted from `start`."""

    pattern: object
    entry: CachedEvaluation
    visiting: VisitingOrder
    start: int  # in the order
    rows: Rows
    failed: Places
    codes: Ints
    passing: Ints  # the places of the feasible rows, ascending
    feasible: Rows
    totals: Ints  # of these, without what is normalized
    normalized: Sequence[tuple[EnabledScore, Ints]]  # with raw scores
    stamp: int  # of the cluster's versions
    judge_s: float  # each window's share of the time that all this took
    score_s: float
    taken: int = attrs.field(default=0, init=False)
    held: bool = attrs.field(default=True, init=False)  # False once something has changed
    _at: int = attrs.field(default=0, init=False)  # where the latest window ends
    _next_passing: int = attrs.field(default=0, init=False)  # how many feasible rows lie before that
    _passed: int = attrs.field(default=0, init=False)  # what changes before this place is not known any more
    _until: int = attrs.field(init=False)  # nothing has changed between these two
    _known_at: int = attrs.field(init=False)  # up to this stamp, changes of rows are known

    def __attrs_post_init__(self) -> None:
        self._until = len(self.rows)
        self._known_at = self.stamp

    def take(
        self, state: CycleState, pod: Pod, start: int, wanted: int, table: NodeTable, reads_pods: bool
    ) -> Window | None:
        """What a search from `start` for so many nodes would find now; None if that is not known."""
        if not self.reaches(start, table, reads_pods):
            return None
        window = self.window_at(start, wanted)
        if window is None:
            return None
        first, many = window
        self.passed(start, first, many, wanted)
        visited = slice(self._at - many, self._at)
        feasible, totals = self.feasible[first : first + wanted], self.totals[first : first + wanted]
        if self.normalized:
            totals = totals.copy()
            for score, raw in self.normalized:
                totals += score.extensions.normalize(state, pod, raw[first : first + wanted]) * score.weight
        highest = int(np.maximum.reduce(totals))
        best = feasible[totals == highest]
        return Window(self.rows[visited], self.failed[visited], self.codes[visited], feasible, totals, highest, best)

    def take_passing(
        self, state: CycleState, pod: Pod, start: int, wanted: int, counting: CountingPlugins, expected: int
    ) -> PassingWindow | None:
        """What a search from `start` on would find, of a lookahead that reaches there, where these plugins reject some
        of what is feasible for all others; None if that is not known. `expected`: as many rows are tried first."""
        place = self._place_of(start)
        first = self._first_passing(place)
        most, many = len(self.passing) - first, expected
        if place < self._at or most < wanted:
            return None
        while True:
            done = counting.passed(state, pod, self.feasible[first : first + many])
            done.cut(wanted)
            found = done.places
            if len(done.rows if found is None else found) == wanted:
                break
            if many >= most:
                return None
            many *= 2
        end = self.passing.item(first + len(done.rows) - 1) + 1
        if end > self._until:
            self.held = False
            return None
        self.passed(start, first, end - place, len(done.rows))
        tried = slice(first, first + len(done.rows))
        totals = self.totals[tried]
        totals = totals.copy() if found is None else totals[found]
        feasible = done.passing
        for score, raw in self.normalized:
            values = raw[tried] if found is None else raw[tried][found]
            totals += score.extensions.normalize(state, pod, values) * score.weight

        def columns() -> tuple[Places, Ints]:
            failed, codes = self.failed[place:end].copy(), self.codes[place:end].copy()
            failed[self.passing[tried] - place], codes[self.passing[tried] - place] = done.columns()
            return failed, codes

        return PassingWindow(self.rows[place:end], columns, len(done.rows), feasible, totals)

    def reaches(self, start: int, table: NodeTable, reads_pods: bool) -> bool:
        """Whether what lies from there on may be known; what has changed meanwhile is looked through."""
        versions, place = table.versions, self._place_of(start)
        if table.order is not self.visiting.order or (reads_pods and versions.pod_updates.at > self.stamp):
            self.held = False
            return False
        if place < self._at or place < self._passed:
            return False
        self._passed = place
        pods, now = versions.pods, versions.now
        if now > self._known_at:
            if now == pods.at == self._known_at + 1:  # most often: the pod that has taken the latest window
                self._changed(pods.rows[-1:], place)
            else:
                for log in (pods, versions.nodes):
                    if log.at > self._known_at:
                        self._changed(log.since(self._known_at), place)
            self._known_at = now
        return True

    def window_at(self, start: int, wanted: int) -> tuple[int, int] | None:
        """The number of the first feasible row of the window from `start` on, of a lookahead that reaches there, and
        how many rows it has; None if it is not known."""
        place = self._place_of(start)
        first = self._first_passing(place)
        last = first + wanted
        if place < self._at or last > len(self.passing):
            return None
        end = self.passing.item(last - 1) + 1
        if end > self._until:
            self.held = False
            return None
        return first, end - place

    def passed(self, start: int, first: int, visited: int, wanted: int) -> None:
        """The window of so many rows from `start` on is taken."""
        self._at, self._next_passing = self._place_of(start) + visited, first + wanted
        self.taken += 1

    def _first_passing(self, place: int) -> int:
        """The number of the first feasible row from that place on."""
        return self._next_passing if place == self._at else int(self.passing.searchsorted(place))

    def _place_of(self, at: int) -> int:
        """The place of what is there in the order."""
        return (at - self.start) % len(self.visiting.order)

    @property
    def rows_left(self) -> int:
        """How many rows lie ahead of the latest window, unless they are found to have changed."""
        return max(0, self._until - self._at)

    def chosen(
        self, state: CycleState, pod: Pod, wanted: int, firsts: Sequence[int], visited: Sequence[int]
    ) -> list[ChosenWindow]:
        """Windows that were taken, by the numbers of their first feasible rows, each with the best of it; `visited` is
        how many rows each has."""
        many = len(firsts)
        at: slice | Ints = slice(firsts[0], firsts[-1] + wanted)
        if firsts[-1] - firsts[0] != (many - 1) * wanted:  # others' windows lie in between
            at = (np.array(firsts)[:, np.newaxis] + np.arange(wanted)).ravel()
        feasible, totals = self.feasible[at], self.totals[at].reshape(many, wanted)
        if self.normalized:
            totals = totals.copy()
            for score, raw in self.normalized:
                totals += _normalized(score, state, pod, raw[at].reshape(many, wanted)) * score.weight
        scores = totals.max(axis=1)
        are_best = (totals == scores[:, np.newaxis]).ravel().nonzero()[0]
        best = feasible[are_best]
        ends = are_best.searchsorted(np.arange(0, (many + 1) * wanted, wanted)).tolist()
        return [
            ChosenWindow(
                state,
                visited[number],
                feasible[number * wanted : (number + 1) * wanted],
                totals[number],
                score,
                best[ends[number] : ends[number + 1]],
            )
            for number, score in enumerate(scores.tolist())
        ]

    def _changed(self, rows: list[int] | None, passed: int) -> None:
        """These rows (None: any) have changed; those before that place are not looked at any more."""
        if rows is None:
            self._until = 0
            return
        places = self.visiting.places
        for row in rows:
            if row < len(places):
                place = self._place_of(places.item(row))
                if passed <= place < self._until:
                    self._until = place


def _normalized(score: EnabledScore, state: CycleState, pod: Pod, raw: Ints) -> Ints:
    """The plugin's normalized scores of several windows, one a row, of one size."""
    if hasattr(score.plugin, "normalize_each"):
        return cast(NormalizesEach, score.plugin).normalize_each(state, pod, raw)
    return np.array([score.extensions.normalize(state, pod, one) for one in raw])


@attrs.define(eq=False)
class Pace:
    """How far to look ahead for one signature."""

    latest: int  # the number of the latest attempt for such a pod
    apart: int = 1  # how many attempts later the one before it was
    windows: int = _FEWEST_WINDOWS  # of its own
    ahead: Lookahead | None = None
    pause: int = 1  # attempts before it is tried again, once it was in vain
    resumes: int = 0  # the number of the attempt with which it is
    expected: ExpectedRows = attrs.field(factory=ExpectedRows)  # to ask plugins that count pods about

    def attempted(self, number: int) -> None:
        """Another attempt is made, of that number."""
        self.apart, self.latest = number - self.latest, number

    def over(self) -> None:
        """What was known ahead is used up, or does not hold any more."""
        ahead, self.ahead = self.ahead, None
        if ahead is None:
            return
        if ahead.taken < _FEWEST_WINDOWS:
            self.resumes, self.pause = self.latest + self.pause, min(2 * self.pause, _LONGEST_PAUSE)
        else:
            self.pause = 1
        most = 2 * self.windows if ahead.held else ahead.taken
        self.windows = min(max(most, _FEWEST_WINDOWS), _MOST_WINDOWS)

    def short(self, left: int) -> bool:
        """Whether too little is known ahead for a run that may visit so many more rows.

        Of several templates in turn each looks ahead anew before it has to: so they come to the end together, and
        there are few runs.
        """
        return self.apart > 1 and self.ahead is not None and self.ahead.rows_left < left // 2

    def rows_wanted(self, wanted: int, nodes: int) -> int:
        """How many feasible rows to look for among so many nodes; 0 where it would be for one pod only."""
        if self.latest < self.resumes:
            return 0
        each = wanted * self.apart  # attempts for others take their windows in between
        windows = min(self.windows, min(nodes, _MOST_ROWS) // each)
        return windows * each if windows >= _FEWEST_WINDOWS else 0
