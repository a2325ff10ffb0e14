"""One attempt as shown in the report: how many nodes each step rejected, and the scores of the best nodes."""

from collections.abc import Sequence

import attrs
import numpy as np

from kschedd.cache.table import NodeTable
from kschedd.framework.status import Code, Status
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.ranking import Scores
from kschedd.scheduling.verdicts import Verdicts

_MOST_REASONS = 6
_MOST_NODES = 8


@attrs.frozen
class FunnelStep:
    """A step that removes nodes: a plugin, or the end of the search because enough nodes were found.

    `left`: after it.
    """

    what: str
    lost: int
    left: int
    reasons: tuple[tuple[int, str], ...] = ()  # pairs of a number of nodes and a reason, largest number first


@attrs.frozen
class Funnel:
    nodes: int
    steps: tuple[FunnelStep, ...]

    @property
    def left(self) -> int:
        return self.steps[-1].left if self.steps else self.nodes


@attrs.frozen
class NodeScore:
    """A node's weighted scores for each plugin, in the order in which the attempt called the plugins."""

    node: str
    total: int
    scores: tuple[int, ...]


@attrs.frozen
class Decision:
    """One scheduling decision of the report.

    `waited_s` counts from the pod's first entry into the active queue; None if that time is unknown. `took_s` is a
    measured time; None in virtual time, in which an attempt takes no time.
    """

    number: int  # number of the attempt in the run
    time_s: float
    pod: str
    attempt: int
    node: str  # "" if it got none
    waited_s: float | None
    took_s: float | None
    feasible: int
    visited: int
    ties: int
    score: int | None
    message: str
    nominated: str = ""
    victims: tuple[str, ...] = ()
    funnel: Funnel | None = None
    plugins: tuple[str, ...] = ()
    best: tuple[NodeScore, ...] = ()


def funnel_of(result: ScheduleResult | FitError, table: NodeTable) -> Funnel:
    """Return the number of nodes that each filter rejected, in the order of the filters."""
    nodes = table.node_count
    verdicts: Verdicts | None
    if isinstance(result, ScheduleResult):
        feasible, verdicts, pre_filter = len(result.feasible), result.verdicts, None
    else:
        feasible, verdicts, pre_filter = 0, result.diagnosis.verdicts, result.diagnosis.pre_filter
    steps: list[FunnelStep] = []
    if verdicts is None:
        if pre_filter is not None and nodes:
            steps.append(FunnelStep(_named(pre_filter, "PreFilter"), nodes, 0, _reasons([(pre_filter, nodes)])))
        elif nodes and isinstance(result, FitError):
            steps.append(FunnelStep(_named(result.status, "error"), nodes, 0, _reasons([(result.status, nodes)])))
        return Funnel(nodes, tuple(steps))
    left = nodes
    unseen = nodes - len(verdicts.rows)
    if unseen > 0:
        narrowed = verdicts.default_status if verdicts.default_status.reasons else None
        if narrowed is not None:
            left -= unseen
            steps.append(FunnelStep(_named(narrowed, "PreFilter"), unseen, left, _reasons([(narrowed, unseen)])))
        elif feasible:
            left -= unseen
            steps.append(FunnelStep("not looked at", unseen, left, ((unseen, "enough nodes were found before"),)))
    for plugin, reasons in _by_plugin(verdicts):
        lost = sum(count for _, count in reasons)
        left -= lost
        steps.append(FunnelStep(plugin, lost, left, _reasons(reasons)))
    return Funnel(nodes, tuple(steps))


def _by_plugin(verdicts: Verdicts) -> list[tuple[str, list[tuple[Status, int]]]]:
    found: dict[str, list[tuple[Status, int]]] = {}
    for status, count in verdicts.distinct_statuses():
        found.setdefault(_named(status, "an extender"), []).append((status, count))
    order = {each.name: each.place for each in verdicts.filters}
    return sorted(found.items(), key=lambda each: order.get(each[0], len(order)))


def _named(status: Status, otherwise: str) -> str:
    return status.plugin or ("error" if status.code == Code.ERROR else otherwise)


def _reasons(reasons: Sequence[tuple[Status, int]]) -> tuple[tuple[int, str], ...]:
    counts: dict[str, int] = {}
    for status, count in reasons:
        counts[status.message] = counts.get(status.message, 0) + count
    ordered = sorted(((count, why) for why, count in counts.items()), key=lambda each: (-each[0], each[1]))
    if len(ordered) <= _MOST_REASONS:
        return tuple(ordered)
    rest = ordered[_MOST_REASONS - 1 :]
    more = sum(count for count, _ in rest), f"{len(rest)} further reasons"
    return (*ordered[: _MOST_REASONS - 1], more)


def best_of(scores: Scores, table: NodeTable, chosen: str) -> tuple[tuple[str, ...], tuple[NodeScore, ...]]:
    """Return the plugins that scored, and the nodes with the highest totals; the chosen node is first."""
    order = np.argsort(-scores.total, kind="stable")[:_MOST_NODES].tolist()
    place = int(np.flatnonzero(scores.rows == table.row_of[chosen])[0])
    places = [place, *(each for each in order if each != place)][:_MOST_NODES]
    plugins = tuple(scores.weighted)
    return plugins, tuple(
        NodeScore(
            table.names[int(scores.rows[each])],
            int(scores.total[each]),
            tuple(int(scores.weighted[plugin][each]) for plugin in plugins),
        )
        for each in places
    )
