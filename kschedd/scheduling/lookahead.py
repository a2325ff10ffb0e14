"""Lookahead: the searches of the next pods of a signature, made at once.

A search visits nodes until enough of them fit, and the next search begins where that one ended. So the pods of one
template take one window of nodes after the other, and in a large cluster nothing that a pod changes on its node matters
to the pods after it until a search has come round to that node. The nodes ahead are therefore judged and scored
together, and each attempt takes its window of them: columns are read once, not once for each pod.

Once a search has come round, the rows that have changed are few. A lookahead that knows all nodes is renewed then:
these rows are judged and scored anew, and where the verdicts on them are what they were, it goes on for another round.

Invariant: a window that is taken is what a search and the scores would come to now. Of the rows that have changed,
those that were passed do not matter, nobody goes back, and nothing is taken that reaches as far as another. Nothing at
all is taken once something else has changed that it depends on: the pattern, the order of visiting, the cache keys of
plugins, the entry's verdicts; where a plugin reads pods that are merely updated, such an update.

Scores are read from the entry when a window is taken: on rows that have not changed they are valid.

What plugins that count pods say changes with every pod, but where they judge a node by its domain, and domains are few,
it is one of few answers (`FilterStateKey`). Each is kept for as long as the rows stay.

Looking ahead pays where pods of the signature come often enough. How far it goes grows with the windows that were
taken: `Pace` says how far.
"""

from collections.abc import Callable, Hashable, Sequence
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
from kschedd.scheduling.filter_pass import FilterPass
from kschedd.scheduling.patterns import Pattern
from kschedd.scheduling.profile import EnabledScore
from kschedd.scheduling.verdicts import Places
from kschedd.values import fast_frozen

_MOST_WINDOWS: Final = 64
_FEWEST_WINDOWS: Final = 2
MOST_UNKNOWN: Final = 20_000  # rows: more take milliseconds where none of them has been judged yet
_LONGEST_PAUSE: Final = 64  # attempts
_MOST_FILTER_STATES: Final = 16  # 16 bytes a row each


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
    """A window of which no more is wanted than what was chosen from; of one node, which needs no score, `totals` and
    `score` are None."""

    state: CycleState  # which others share
    visited: int
    feasible: Rows
    totals: Ints | None
    score: int | None
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
    """The nodes from `start` on, judged and scored for one signature.

    Places are counted from `start`. Once it was renewed each node has two of them, so that no window ends with a round.
    How far something is ahead is counted from where it was made, or renewed last.
    """

    pattern: Pattern
    entry: CachedEvaluation
    visiting: VisitingOrder
    start: int  # in the order
    rows: Rows
    failed: Places
    codes: Ints
    passing: Ints  # the places of the feasible rows, ascending
    feasible: Rows
    stamp: int  # of the cluster's versions
    judge_s: float  # each window's share of the time that all this took
    score_s: float
    taken: int = attrs.field(default=0, init=False)
    held: bool = attrs.field(default=True, init=False)  # False once something has changed
    _verdicts: int = attrs.field(init=False)  # those of the entry that this knows
    _from: int = attrs.field(init=False)  # where in the order it was made, or renewed
    _at: int = attrs.field(default=0, init=False)  # where the latest window ends
    _passed: int = attrs.field(default=0, init=False)  # what changes before that is not known any more
    _until: int = attrs.field(init=False)  # nothing has changed between these two
    _known_at: int = attrs.field(init=False)  # up to this stamp, changes of rows are known
    # By what plugins that count pods found: which of the feasible rows pass them; None: found once.
    _by_filter_state: dict[Hashable, FilterPass | None] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._verdicts, self._from = self.entry.verdicts, self.start
        self._until, self._known_at = len(self.rows), self.stamp

    def renewed(self, pattern: Pattern, entry: CachedEvaluation, table: NodeTable, start: int) -> bool:
        """Whether it holds for one more round from `start` on, by an entry that was brought up to date just now."""
        nodes = len(table.order)
        if self.pattern is not pattern or self.entry is not entry or self._verdicts != entry.verdicts:
            return False
        if table.order is not self.visiting.order or len(self.rows) < nodes:
            return False
        if len(self.rows) == nodes:
            self.rows, self.feasible = np.concatenate((self.rows,) * 2), np.concatenate((self.feasible,) * 2)
            self.failed, self.codes = np.concatenate((self.failed,) * 2), np.concatenate((self.codes,) * 2)
            self.passing = np.concatenate((self.passing, self.passing + nodes))
            self._by_filter_state.clear()
        self._from, self._at, self._passed, self._until = start, 0, 0, nodes
        self._known_at, self.held = table.versions.now, True
        return True

    def take(self, state: CycleState, pod: Pod, start: int, wanted: int) -> Window | None:
        """What a search from `start` for so many nodes would find now, of a lookahead that reaches there; None if that
        is not known."""
        window = self.window_at(start, wanted)
        if window is None:
            return None
        first, many = window
        self.passed(start, many)
        place = self._place_of(start)
        visited = slice(place, place + many)
        feasible = self.feasible[first : first + wanted]
        totals = self._totals(state, pod, feasible)
        highest = totals.item(totals.argmax())
        best = feasible[totals == highest]
        return Window(self.rows[visited], self.failed[visited], self.codes[visited], feasible, totals, highest, best)

    def take_passing(
        self, state: CycleState, pod: Pod, start: int, wanted: int, counting: CountingPlugins, expected: int
    ) -> PassingWindow | None:
        """What a search from `start` on would find, of a lookahead that reaches there, where these plugins reject some
        of what is feasible for all others; None if that is not known. `expected`: as many rows are tried first.
        """
        place = self._place_of(start)
        first = self.passing.searchsorted(place).item()
        if self._ahead(start) < self._at:
            return None
        done, offset = self._all_passed(state, pod, counting), 0
        if done is None:
            most = int(self.passing.searchsorted(place + len(self.visiting.order))) - first
            done, offset = self._some_passed(state, pod, counting, wanted, expected, first, most), first
        begin = first - offset
        if done.places is None:
            last, feasible = begin + wanted - 1, done.rows[begin : begin + wanted]
        else:
            at = done.places.searchsorted(begin).item()
            places = done.places[at : at + wanted]
            last, feasible = places.item(-1) if len(places) else begin, done.rows[places]
        if len(feasible) < wanted:
            return None
        end = self.passing.item(offset + last) + 1
        if self._ahead(start) + end - place > self._until:
            self.held = False
            return None
        self.passed(start, end - place)
        totals = self._totals(state, pod, feasible)

        def columns() -> tuple[Places, Ints]:
            failed, codes = self.failed[place:end].copy(), self.codes[place:end].copy()
            tried = self.passing[first : offset + last + 1] - place
            failed[tried], codes[tried] = [column[begin : last + 1] for column in done.columns()]
            return failed, codes

        return PassingWindow(self.rows[place:end], columns, last + 1 - begin, feasible, totals)

    def _all_passed(self, state: CycleState, pod: Pod, counting: CountingPlugins) -> FilterPass | None:
        """Of all feasible rows those that pass these plugins, too, where they have said so before; the second time
        that they would, they are asked about all rows."""
        key, known = counting.filter_state_key(state), self._by_filter_state
        if key is None:
            return None
        if key not in known:
            if len(known) >= _MOST_FILTER_STATES:
                del known[next(iter(known))]
            known[key] = None
            return None
        done = known[key]
        if done is None:
            done = known[key] = counting.passed(state, pod, self.feasible)
        return done

    def _some_passed(
        self,
        state: CycleState,
        pod: Pod,
        counting: CountingPlugins,
        wanted: int,
        expected: int,
        first: int,
        most: int,
    ) -> FilterPass:
        """Likewise of the feasible rows from the first on, at most so many, until enough pass, if they do."""
        many = expected
        while True:
            done = counting.passed(state, pod, self.feasible[first : first + min(many, most)])
            if many >= most or len(done.rows if done.places is None else done.places) >= wanted:
                return done
            many *= 2

    def _totals(self, state: CycleState, pod: Pod, rows: Rows) -> Ints:
        """The totals of these rows, without the scores of plugins that count pods; of several windows, one in a row of
        the matrix, where `rows` is one."""
        entry, pattern = self.entry, self.pattern
        totals: Ints = entry.base[rows]
        if pattern.constant:
            totals += pattern.constant
        for score in pattern.normalized:
            totals += _normalized(score, state, pod, entry.raw[score.name][rows]) * score.weight
        return totals

    def reaches(self, start: int, table: NodeTable, reads_pods: bool) -> bool:
        """Whether what lies from there on may be known; what has changed meanwhile is looked through."""
        versions, ahead = table.versions, self._ahead(start)
        if (
            table.order is not self.visiting.order
            or self._verdicts != self.entry.verdicts
            or (reads_pods and versions.pod_updates.at > self._known_at)
        ):
            self.held = False
            return False
        if ahead < self._at or ahead < self._passed:
            return False
        self._passed = ahead
        pods, now = versions.pods, versions.now
        if now > self._known_at:
            if now == pods.at == self._known_at + 1:  # most often: the pod that has taken the latest window
                self._changed(pods.rows[-1:], ahead)
            else:
                for log in (pods, versions.nodes):
                    if log.at > self._known_at:
                        self._changed(log.since(self._known_at), ahead)
            self._known_at = now
        return True

    def window_at(self, start: int, wanted: int) -> tuple[int, int] | None:
        """The number of the first feasible row of the window from `start` on, of a lookahead that reaches there, and
        how many rows it has; None if it is not known."""
        nodes, passing = len(self.visiting.order), self.passing
        place, ahead = (start - self.start) % nodes, (start - self._from) % nodes
        first = passing.searchsorted(place).item()
        last = first + wanted
        if ahead < self._at or last > len(passing):
            return None
        visited: int = passing.item(last - 1) + 1 - place
        if ahead + visited > self._until:
            self.held = False
            return None
        return first, visited

    def passed(self, start: int, visited: int) -> None:
        """The window of so many rows from `start` on is taken."""
        self._at = self._ahead(start) + visited
        self.taken += 1

    def _place_of(self, at: int) -> int:
        """The place of what is there in the order; of two the first."""
        return (at - self.start) % len(self.visiting.order)

    def _ahead(self, at: int) -> int:
        """How far ahead this lies."""
        return (at - self._from) % len(self.visiting.order)

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
        if firsts[-1] - firsts[0] == (many - 1) * wanted:
            feasible = self.feasible[firsts[0] : firsts[-1] + wanted].reshape(many, wanted)
        else:  # others' windows lie in between, or the end of the order
            feasible = np.array([self.feasible[first : first + wanted] for first in firsts])
        totals = self._totals(state, pod, feasible)
        scores = totals.max(axis=1)
        are_best = (totals == scores[:, np.newaxis]).ravel().nonzero()[0]
        best = feasible.ravel()[are_best]
        ends = are_best.searchsorted(np.arange(0, (many + 1) * wanted, wanted)).tolist()
        return [
            ChosenWindow(
                state,
                visited[number],
                feasible[number],
                totals[number],
                score,
                best[ends[number] : ends[number + 1]],
            )
            for number, score in enumerate(scores.tolist())
        ]

    def _changed(self, rows: list[int] | None, passed: int) -> None:
        """These rows (None: any) have changed; those before that are not looked at any more."""
        if rows is None:
            self._until = 0
            return
        places = self.visiting.places
        for row in rows:
            if row < len(places):
                ahead = self._ahead(places.item(row))
                if passed <= ahead < self._until:
                    self._until = ahead


def _normalized(score: EnabledScore, state: CycleState, pod: Pod, raw: Ints) -> Ints:
    """The plugin's normalized scores of one window; or of several, one a row."""
    if raw.ndim == 1:
        return score.extensions.normalize(state, pod, raw)
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
    most_rows: int = MOST_UNKNOWN  # that are looked for at once
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
        each, most = wanted * self.apart, min(nodes, self.most_rows)  # attempts for others take windows in between
        if most < _FEWEST_WINDOWS * each:
            return 0
        return most if self.windows >= most // each else self.windows * each
