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

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.scheduling.evaluation_cache import CachedEvaluation
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

    visited: int
    feasible: Rows
    totals: Ints
    score: int
    best: Rows


@attrs.define(eq=False)
class VisitingOrder:
    """The order in which nodes are visited, and the place of each row in it."""

    order: Rows
    places: Ints = attrs.field(init=False)  # by row

    def __attrs_post_init__(self) -> None:
        self.places = np.zeros(int(self.order.max(initial=0)) + 1, dtype=np.int64)
        self.places[self.order] = np.arange(len(self.order))


@attrs.frozen(eq=False)
class Windows:
    """All windows that follow one another from the start on, where nobody else takes one in between."""

    wanted: int
    ends: Sequence[int]  # the place where each ends
    totals: Ints  # of the feasible rows in them
    scores: Sequence[int]
    best: Rows  # of all, one window's after the other's
    best_ends: Sequence[int]  # where those of each window end


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
    _windows: Windows | None = attrs.field(default=None, init=False)
    _at: int = attrs.field(default=0, init=False)  # where the latest window ends
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
        place = start - self.start
        if not self._reaches(place, table, reads_pods):
            return None
        known = self._windows
        if known is not None and known.wanted == wanted and place == self._at and self.taken < len(known.ends):
            first = self.taken * wanted
            end = known.ends[self.taken]
        else:
            self._windows = known = None
            first = int(self.passing.searchsorted(place))
            if first + wanted > len(self.passing):
                return None
            end = self.passing.item(first + wanted - 1) + 1
        if end > self._until:
            self.held = False
            return None
        rows, failed, codes = self.rows[place:end], self.failed[place:end], self.codes[place:end]
        feasible = self.feasible[first : first + wanted]
        if known is not None:
            at, totals = self.taken, known.totals[first : first + wanted]
            score, best = known.scores[at], known.best[known.best_ends[at - 1] if at else 0 : known.best_ends[at]]
        else:
            totals = self._totals(state, pod, first, first + wanted)
            score = int(np.maximum.reduce(totals))
            best = feasible[totals == score]
        self._at, self.taken = end, self.taken + 1
        return Window(rows, failed, codes, feasible, totals, score, best)

    @property
    def rows_left(self) -> int:
        """How many rows lie ahead of the latest window, unless they are found to have changed."""
        return max(0, self._until - self._at)

    def take_several(
        self, state: CycleState, pod: Pod, start: int, wanted: int, most: int, table: NodeTable, reads_pods: bool
    ) -> Sequence[ChosenWindow]:
        """What the next searches, at most so many, would find now, the first of them from `start`, where nothing
        changes in between but the nodes that they choose; of one only, unless the best of each are known."""
        known, place, first = self._windows, start - self.start, self.taken
        if known is None or known.wanted != wanted or place != self._at:
            one = self.take(state, pod, start, wanted, table, reads_pods)
            if one is None:
                return ()
            return (ChosenWindow(len(one.rows), one.feasible, one.totals, one.score, one.best),)
        if not self._reaches(place, table, reads_pods):
            return ()
        ends, best_ends = known.ends, known.best_ends
        last = bisect_right(ends, self._until, first, min(len(ends), first + most))
        found = []
        for at in range(first, last):
            end, rows = ends[at], slice(at * wanted, (at + 1) * wanted)
            best = known.best[best_ends[at - 1] if at else 0 : best_ends[at]]
            found.append(ChosenWindow(end - place, self.feasible[rows], known.totals[rows], known.scores[at], best))
            place = end
        self.taken, self._at = last, place
        return found

    def _reaches(self, place: int, table: NodeTable, reads_pods: bool) -> bool:
        """Whether what lies from that place on may be known; what has changed meanwhile is looked through."""
        versions = table.versions
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

    def choose_each(self, state: CycleState, pod: Pod, wanted: int) -> None:
        """Find the best of each window in advance: for pods that nobody else comes between."""
        many = len(self.passing) // wanted
        if not many:
            return
        ends = self.passing[wanted - 1 : many * wanted : wanted] + 1
        bounds = range(0, many * wanted, wanted)
        if self.normalized:
            totals = np.concatenate([self._totals(state, pod, first, first + wanted) for first in bounds])
        else:
            totals = self.totals[: many * wanted]
        by_window = totals.reshape(many, wanted)
        scores = by_window.max(axis=1)
        are_best = (by_window == scores[:, np.newaxis]).ravel().nonzero()[0]
        best_ends = are_best.searchsorted(range(wanted, many * wanted + 1, wanted))
        best = self.feasible[are_best]
        self._windows = Windows(wanted, ends.tolist(), totals, scores.tolist(), best, best_ends.tolist())

    def _totals(self, state: CycleState, pod: Pod, first: int, last: int) -> Ints:
        """Of these among the feasible rows, as of a search that found them."""
        totals = self.totals[first:last]
        if self.normalized:
            totals = totals.copy()
            for score, raw in self.normalized:
                totals += score.extensions.normalize(state, pod, raw[first:last]) * score.weight
        return totals

    def _changed(self, rows: list[int] | None, passed: int) -> None:
        """These rows (None: any) have changed; those before that place are not looked at any more."""
        if rows is None:
            self._until = 0
            return
        places, start = self.visiting.places, self.start
        for row in rows:
            if row < len(places):
                place = places.item(row) - start
                if passed <= place < self._until:
                    self._until = place


@attrs.define(eq=False)
class Pace:
    """How far to look ahead for one signature."""

    latest: int  # the number of the latest attempt for such a pod
    apart: int = 1  # how many attempts later the one before it was
    windows: int = _FEWEST_WINDOWS  # of its own
    ahead: Lookahead | None = None
    pause: int = 1  # attempts before it is tried again, once it was in vain
    resumes: int = 0  # the number of the attempt with which it is

    def attempted(self, number: int, several: int = 1) -> None:
        """Another attempt is made, or so many one after the other; the first has that number."""
        self.apart = number - self.latest if several == 1 else 1
        self.latest = number + several - 1

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

    def rows_wanted(self, wanted: int, nodes: int) -> int:
        """How many feasible rows to look for among so many nodes; 0 where it would be for one pod only."""
        if self.latest < self.resumes:
            return 0
        each = wanted * self.apart  # attempts for others take their windows in between
        windows = min(self.windows, min(nodes, _MOST_ROWS) // each)
        return windows * each if windows >= _FEWEST_WINDOWS else 0
