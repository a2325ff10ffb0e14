"""Stepper: an attempt that may stop at each plugin, with the attempt's intermediate state and the user's changes.

An attempt with a stepper does not use the evaluation cache: each plugin is called in turn on all remaining nodes. The
result is the same. The attempt calls its stepper before each plugin call (`before`), after a plugin has rejected
something (`rejected`), and at its outcome. The stepper yields a StopPoint if the debugger requires it. The caller
continues the generator when the debugger is no longer stopped.

While the attempt is stopped, a user may `force` a node, `veto` nodes, replace a plugin's `score`, or `drop` the
attempt. Each such change is an `Intervention`, which takes effect when the attempt continues. `made` contains the
changes by the number of the stop point. A repeated attempt, in a replay or a fork, has `planned` interventions, which
are applied at the stop points of the original attempt. A stopped attempt is therefore described by values: the pod, the
number of the stop point, and the changes (`Reentry`).

The driver stores the stepper for one attempt and its binding cycle. Pure. Errors: AttemptDropped, raised inside the
attempt.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, unresolvable
from kschedd.scheduling.debug.breakpoints import REJECTED, WAITING, StopPoint
from kschedd.scheduling.debug.debugger import Debugger, Intervention
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.filter_pass import FilterPass
from kschedd.scheduling.profiles.profile import EnabledFilter
from kschedd.scheduling.verdicts import PASSED, Verdicts

VETOED: Final = "node(s) were vetoed by hand"
DROPPED: Final = "the attempt was aborted by `debug drop`"


class AttemptDropped(Exception):
    """The error that ends an attempt dropped on a user's request."""


@attrs.define(eq=False)
class PluginScores:
    """A plugin's scores of each row, before and after normalizing."""

    weight: int
    raw: Ints
    normalized: Ints


@attrs.define(eq=False)
class Stepper:
    """The stepper of one attempt, with its state and the user's changes."""

    debugger: Debugger
    pod: Pod
    attempt: int
    table: NodeTable
    cycle: int
    state: CycleState | None = None
    rejected_by: Status | None = None  # PreFilter's rejection of the pod
    narrowed_to: frozenset[str] | None = None  # node names that PreFilter returned; None: all nodes
    verdicts: Verdicts | None = None  # of the completed search
    scoring: Rows | None = None  # the rows being scored
    scores: dict[str, PluginScores] = attrs.field(factory=dict)
    victims: Sequence[Pod] = ()
    nominated_node: str = ""
    forced: str = ""
    vetoed: set[str] = attrs.field(factory=set)
    replaced: dict[tuple[str, str], int] = attrs.field(factory=dict)  # (plugin, node) -> normalized score
    dropped: bool = False
    points: int = 0  # number of stop points that the attempt has passed, with or without a stop
    made: dict[int, list[Intervention]] = attrs.field(factory=dict)  # the user's changes by stop point number
    planned: Mapping[int, Sequence[Intervention]] = attrs.field(factory=dict)  # by stop point number
    reenters_at: int = 0  # number of the stop point at which the original attempt was stopped; 0: none
    # state of the search in progress
    _search: tuple[FilterPass, dict[int, Status], tuple[EnabledFilter, ...]] | None = None

    def intervene(self, change: Intervention) -> None:
        """Store a change to apply when the attempt continues."""
        self.made.setdefault(self.points, []).append(change)
        match change.verb:
            case "force":
                self.forced = change.node
            case "veto":
                self.vetoed.add(change.node)
                if self.forced == change.node:
                    self.forced = ""
            case "score":
                self.replaced[change.plugin, change.node] = change.score
            case "drop":
                self.dropped = True
            case _:
                raise ValueError(f"{change.verb!r} is no intervention")

    # -- stop points ------------------------------------------------------------------------------------------

    def before(self, point: str, plugin: str, rows: Rows | None = None, node: str = "") -> Work[None]:
        """Stop before the plugin is called on these rows, if the debugger requires it. Raises AttemptDropped."""
        yield from self._at(StopPoint(self.cycle, self.pod, self.attempt, point, plugin, "", node, rows, self.table))

    def rejected(self, point: str, plugin: str, rows: Rows | None = None, node: str = "") -> Work[None]:
        """Stop after the plugin has rejected the pod or these rows, if the debugger requires it.

        Raises AttemptDropped.
        """
        at = StopPoint(self.cycle, self.pod, self.attempt, point, plugin, REJECTED, node, rows, self.table)
        yield from self._at(at)

    def waits(self, plugin: str, node: str) -> Work[None]:
        """Stop where a Permit plugin returned Wait, if the debugger requires it."""
        yield from self._at(self.place("permit", plugin, node, WAITING))

    def ended(self, outcome: str, node: str = "", rows: Rows | None = None) -> Work[None]:
        """Stop at the attempt's outcome, if the debugger requires it. Raises AttemptDropped."""
        yield from self._at(StopPoint(self.cycle, self.pod, self.attempt, "", "", outcome, node, rows, self.table))

    def place(self, point: str, plugin: str, node: str, outcome: str = "") -> StopPoint:
        """Return a stop point for a pod with a selected node."""
        return StopPoint(self.cycle, self.pod, self.attempt, point, plugin, outcome, node, None, self.table)

    def _at(self, at: StopPoint) -> Work[None]:
        self.points += 1
        changes = self.planned.get(self.points, ())
        if self.points < self.reenters_at:
            pass  # the original attempt has passed this point, and its breakpoints have counted it
        elif self.points == self.reenters_at:
            for change in changes:
                self.intervene(change)
            changes = ()
            self.debugger.reentered(at)
            yield at
        elif self.debugger.arrives(at):
            yield at
        for change in changes:
            self.intervene(change)
        if self.dropped:
            raise AttemptDropped

    # -- filtering --------------------------------------------------------------------------------------------

    def filtering(
        self, done: FilterPass, explicit_status: dict[int, Status], filters: tuple[EnabledFilter, ...]
    ) -> None:
        """Begin a search; `done` contains the filters' results so far."""
        self._search, self.verdicts = (done, explicit_status, filters), None

    def filtered(self, name: str, before: Rows, after: Rows) -> Work[None]:
        """Record the rows that passed a filter. Stop if the filter rejected rows and the debugger requires a stop."""
        if len(after) == len(before):
            return
        if self.debugger.watches_outcomes or self.points + 1 in (*self.planned, self.reenters_at):
            yield from self.rejected("filter", name, np.setdiff1d(before, after))
        else:
            self.points += 1  # the numbers of stop points must not depend on the breakpoints

    def verdicts_so_far(self) -> Verdicts | None:
        """Return the filters' verdicts so far, or None if no filter was called yet."""
        if self.verdicts is not None or self._search is None or self.state is None:
            return self.verdicts
        done, explicit_status, filters = self._search
        failed, codes = done.columns()
        return Verdicts(self.table, filters, self.state, self.pod, done.rows, failed, codes, dict(explicit_status))

    def nodes_left(self) -> Rows | None:
        """Return the rows that no filter has rejected yet, or None if no filter was called yet."""
        if self.scoring is not None:
            return self.scoring
        verdicts = self.verdicts_so_far()
        return None if verdicts is None else verdicts.rows[verdicts.failed == PASSED]

    def vetoes(self, rows: Rows) -> dict[int, Status]:
        """Return the statuses of the vetoed rows among `rows`."""
        row_of = self.table.row_of
        wanted = {row_of[name] for name in self.vetoed if name in row_of}
        return {row: unresolvable(VETOED) for row in rows.tolist() if row in wanted}

    # -- scoring ----------------------------------------------------------------------------------------------

    def scored(self, plugin: str, weight: int, raw: Ints, normalized: Ints) -> None:
        """Store a plugin's scores of these rows."""
        self.scores[plugin] = PluginScores(weight, raw, normalized)

    def normalized(self, plugin: str) -> Ints:
        """Return the plugin's scores, including the values that the user replaced."""
        assert self.scoring is not None, "scores belong to rows"
        values = self.scores[plugin].normalized
        wanted = {self.table.row_of.get(node): score for (name, node), score in self.replaced.items() if name == plugin}
        if not wanted:
            return values
        return np.array(
            [wanted.get(row, value) for row, value in zip(self.scoring.tolist(), values.tolist(), strict=True)],
            dtype=np.int64,
        )

    def totals(self) -> Ints:
        """Return the totals of these rows, from the plugins that have scored them so far."""
        assert self.scoring is not None, "scores belong to rows"
        total = np.zeros(len(self.scoring), dtype=np.int64)
        for plugin, scores in self.scores.items():
            total += self.normalized(plugin) * scores.weight
        return total

    @property
    def changed(self) -> Mapping[str, object]:
        """The user's changes so far, comparable with an earlier value."""
        return {"forced": self.forced, "vetoed": frozenset(self.vetoed), "replaced": dict(self.replaced)}


def dropped_status() -> Status:
    """Return the status of a dropped attempt."""
    return Status(Code.ERROR, (DROPPED,))
