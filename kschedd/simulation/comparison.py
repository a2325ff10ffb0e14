"""One workload under two configurations: where pods go under each, and which plugin made the difference.

Each configuration runs on a fork of the same cluster, with the same random numbers. Where a pod went to two nodes,
each side is run again and asked, at that pod's own attempt, how it scores both nodes: the plugin whose scores changed
most between the sides, for the one node against the other, is the one that decided. From the first difference on the
two clusters are not the same any more, so that later pods may differ for that reason alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import attrs

from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.ranking import Scores
from kschedd.scheduling.debug.work import drive
from kschedd.simulation.engine import Engine
from kschedd.simulation.upgrade import NodeOrNone, Pending, PodOutcome

OnResult = Callable[[Engine, QueuedPod, ScheduleResult | FitError], None]
Side = Callable[[OnResult], None]
"""Makes a fork with one of the configurations and the workload, lets it run until nothing is left to do, closes it."""


@attrs.define
class SideOutcome:
    """What a side came to: the node of each pod by its key ("" for none), and why those without one have none."""

    nodes: dict[str, str] = attrs.field(factory=dict)
    why: dict[str, str] = attrs.field(factory=dict)
    order: dict[str, None] = attrs.field(factory=dict)

    @property
    def outcomes(self) -> dict[str, PodOutcome]:
        return {key: PodOutcome(self.nodes.get(key, ""), self.why.get(key, "")) for key in self.order}

    def note(self, engine: Engine, entry: QueuedPod, result: ScheduleResult | FitError) -> None:
        self.order.setdefault(entry.key)
        if isinstance(result, FitError):
            self.nodes[entry.key], self.why[entry.key] = "", result.message
        else:
            self.nodes[entry.key] = result.node_name
            self.why.pop(entry.key, None)


@attrs.frozen
class ComparedPod:
    """A pod that has another node on the second side; `a` and `b` are "" if it has none."""

    pod: str
    a: NodeOrNone
    b: str
    plugin: Annotated[str, "the one whose scores changed most for b against a, empty: not told by scores"]
    on_a: Annotated[int, "by how much the plugin puts b ahead on the first side"]
    on_b: int
    why: str


@attrs.frozen
class ComparedConfigs:
    """One workload under two configurations; the pods in the order of their attempts on the first side."""

    pods: Annotated[int, "how many were tried"]
    different: Annotated[Sequence[ComparedPod], "those that went to different nodes, in the order of their attempts"]
    pending: Pending


def compare(first: Side, second: Side) -> ComparedConfigs:
    outcomes = SideOutcome(), SideOutcome()
    for side, outcome in zip((first, second), outcomes, strict=True):
        side(outcome.note)
    a, b = outcomes
    keys = [*a.order, *(key for key in b.order if key not in a.order)]
    differing = {key: (a.nodes.get(key, ""), b.nodes.get(key, "")) for key in keys}
    differing = {key: nodes for key, nodes in differing.items() if nodes[0] != nodes[1]}
    preferences = [_preferences(side, differing) for side in (first, second)] if differing else [{}, {}]
    return ComparedConfigs(
        len(keys),
        [
            _told(key, *nodes, preferences[0].get(key), preferences[1].get(key), a.why.get(key) or b.why.get(key, ""))
            for key, nodes in differing.items()
        ],
        [sum(not node for node in outcome.nodes.values()) for outcome in outcomes],
    )


def _preferences(side: Side, differing: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Return each plugin's weighted score of the second node minus that of the first, by pod, if both fit."""
    found: dict[str, dict[str, int]] = {}

    def note(engine: Engine, entry: QueuedPod, result: ScheduleResult | FitError) -> None:
        nodes = differing.get(entry.key)
        if nodes is None or isinstance(result, FitError) or result.totals is None:
            return
        feasible, rows = result.feasible.tolist(), engine.machine.cluster.table.row_of
        if not all(rows.get(name) in feasible for name in nodes):
            return
        places = [feasible.index(rows[name]) for name in nodes]
        ranking = engine.machine.schedulers[entry.pod.scheduler_name].ranking
        scores: Scores = drive(ranking.details(result.state, entry.pod, result.feasible))
        found[entry.key] = {
            plugin: int(weighted[places[1]] - weighted[places[0]]) for plugin, weighted in scores.weighted.items()
        }

    side(note)
    return found


def _told(
    key: str, a: str, b: str, on_a: Mapping[str, int] | None, on_b: Mapping[str, int] | None, why: str
) -> ComparedPod:
    plugin, scores = "", (0, 0)
    if on_a is not None and on_b is not None:
        changed = {name: on_b.get(name, 0) - on_a.get(name, 0) for name in {*on_a, *on_b}}
        plugin = max(sorted(changed), key=lambda name: changed[name], default="")
        if plugin and changed[plugin] <= 0:
            plugin = ""
        scores = on_a.get(plugin, 0), on_b.get(plugin, 0)
    return ComparedPod(key, a, b, plugin, *scores, why)
