"""Stepper: one attempt that may be stopped at each plugin, what is known of it there, and what is changed by hand.

An attempt with a stepper takes the plain path: each plugin is called in turn, on all nodes that are left, and nothing
is taken from the evaluation cache. What it comes to is the same. The attempt tells its stepper before each plugin is
called (`before`), after one has rejected something (`rejected`), and of its outcome; the stepper yields a StopPoint
where the debugger says so, and whoever drives the attempt goes on with it when the debugger is no longer stopped.

While it is stopped, somebody may `force` a node, `veto` nodes, replace a plugin's `score`, or `drop` the attempt: each
an `Intervention`, which takes effect when the attempt goes on. Those of an attempt that is replayed are `planned`: made
at the stop points at which they were made.

Owned by the driver, for one attempt and its binding cycle. Pure. Errors: AttemptDropped, within the attempt.
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
from kschedd.scheduling.debug.debugger import Debugger
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.filter_pass import FilterPass
from kschedd.scheduling.profiles.profile import EnabledFilter
from kschedd.scheduling.verdicts import PASSED, Verdicts

VETOED: Final = "node(s) were vetoed by hand"
DROPPED: Final = "the attempt was given up by hand"


class AttemptDropped(Exception):
    """The attempt is given up, on somebody's request."""


@attrs.frozen
class Intervention:
    """What somebody changes of an attempt that is stopped. `verb`: force, veto, score or drop."""

    verb: str
    node: str = ""
    plugin: str = ""
    score: int = 0


@attrs.define(eq=False)
class PluginScores:
    """The scores of one plugin: one for each of the rows, before and after normalizing."""

    weight: int
    raw: Ints
    normalized: Ints


@attrs.define(eq=False)
class Stepper:
    """See the module."""

    debugger: Debugger
    pod: Pod
    attempt: int
    table: NodeTable
    cycle: int
    state: CycleState | None = None
    rejected_by: Status | None = None  # PreFilter's rejection of the pod
    narrowed_to: frozenset[str] | None = None  # by PreFilter
    verdicts: Verdicts | None = None  # of the search that has ended
    scoring: Rows | None = None  # the rows that are scored
    scores: dict[str, PluginScores] = attrs.field(factory=dict)
    victims: Sequence[Pod] = ()
    nominated_node: str = ""
    forced: str = ""
    vetoed: set[str] = attrs.field(factory=set)
    replaced: dict[tuple[str, str], int] = attrs.field(factory=dict)  # (plugin, node) -> normalized score
    dropped: bool = False
    points: int = 0  # stop points that were reached, stopped or not
    planned: Mapping[int, Sequence[Intervention]] = attrs.field(factory=dict)  # by the number of their stop point
    _search: tuple[FilterPass, dict[int, Status], tuple[EnabledFilter, ...]] | None = None  # of the search that runs

    def intervene(self, change: Intervention) -> None:
        """Have this changed when the attempt goes on."""
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
        """The plugin is about to be called, on these rows. Raises AttemptDropped."""
        yield from self._at(StopPoint(self.cycle, self.pod, self.attempt, point, plugin, "", node, rows, self.table))

    def rejected(self, point: str, plugin: str, rows: Rows | None = None, node: str = "") -> Work[None]:
        """The plugin has rejected the pod, or these rows for it. Raises AttemptDropped."""
        at = StopPoint(self.cycle, self.pod, self.attempt, point, plugin, REJECTED, node, rows, self.table)
        yield from self._at(at)

    def waits(self, plugin: str, node: str) -> Work[None]:
        """A Permit plugin keeps the pod waiting."""
        yield from self._at(self.place("permit", plugin, node, WAITING))

    def ended(self, outcome: str, node: str = "", rows: Rows | None = None) -> Work[None]:
        """The attempt has come to this. Raises AttemptDropped."""
        yield from self._at(StopPoint(self.cycle, self.pod, self.attempt, "", "", outcome, node, rows, self.table))

    def place(self, point: str, plugin: str, node: str, outcome: str = "") -> StopPoint:
        """A stop point on the way of a pod whose node is chosen."""
        return StopPoint(self.cycle, self.pod, self.attempt, point, plugin, outcome, node, None, self.table)

    def _at(self, at: StopPoint) -> Work[None]:
        self.points += 1
        if self.debugger.arrives(at):
            yield at
        for change in self.planned.get(self.points, ()):
            self.intervene(change)
        if self.dropped:
            raise AttemptDropped

    # -- filtering --------------------------------------------------------------------------------------------

    def filtering(
        self, done: FilterPass, explicit_status: dict[int, Status], filters: tuple[EnabledFilter, ...]
    ) -> None:
        """A search begins; `done` holds what its filters have said so far."""
        self._search, self.verdicts = (done, explicit_status, filters), None

    def filtered(self, name: str, before: Rows, after: Rows) -> Work[None]:
        """A filter has left these rows."""
        if len(after) == len(before):
            return
        if self.debugger.watches_outcomes or self.points + 1 in self.planned:
            yield from self.rejected("filter", name, np.setdiff1d(before, after))
        else:
            self.points += 1  # numbered alike whatever is watched for

    def verdicts_so_far(self) -> Verdicts | None:
        """What the filters have said up to now; None if none was called yet."""
        if self.verdicts is not None or self._search is None or self.state is None:
            return self.verdicts
        done, explicit_status, filters = self._search
        failed, codes = done.copy().columns()
        return Verdicts(self.table, filters, self.state, self.pod, done.rows, failed, codes, dict(explicit_status))

    def nodes_left(self) -> Rows | None:
        """The rows that no filter has rejected yet; None while no filter was called."""
        if self.scoring is not None:
            return self.scoring
        verdicts = self.verdicts_so_far()
        return None if verdicts is None else verdicts.rows[verdicts.failed == PASSED]

    def vetoes(self, rows: Rows) -> dict[int, Status]:
        """The statuses of those of the rows that were vetoed."""
        row_of = self.table.row_of
        wanted = {row_of[name] for name in self.vetoed if name in row_of}
        return {row: unresolvable(VETOED) for row in rows.tolist() if row in wanted}

    # -- scoring ----------------------------------------------------------------------------------------------

    def scored(self, plugin: str, weight: int, raw: Ints, normalized: Ints) -> None:
        """A plugin has scored the rows."""
        self.scores[plugin] = PluginScores(weight, raw, normalized)

    def normalized(self, plugin: str) -> Ints:
        """The plugin's scores with what was put in their place by hand."""
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
        """The totals of the rows, from the plugins that have scored them so far."""
        assert self.scoring is not None, "scores belong to rows"
        total = np.zeros(len(self.scoring), dtype=np.int64)
        for plugin, scores in self.scores.items():
            total += self.normalized(plugin) * scores.weight
        return total

    @property
    def changed(self) -> Mapping[str, object]:
        """What was changed by hand; equal while nothing more was."""
        return {"forced": self.forced, "vetoed": frozenset(self.vetoed), "replaced": dict(self.replaced)}


def dropped_status() -> Status:
    """The status of an attempt that was given up."""
    return Status(Code.ERROR, (DROPPED,))
