"""Comparison of pod placements under two configurations, or under two Kubernetes versions (`upgrade.py`).

If a pod gets different nodes under two configurations, it is scheduled again by both configurations. The plugin that
decided is the one whose score difference between the two nodes changed most. If a workload's pods are created one after
the other, the two clusters differ from the first differing placement on. Later pods may differ for that reason alone.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Final, Protocol, TypeVar

import attrs

from kschedd.api.pods import Pod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.ranking import Scores
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.simulation.placements import PlacementSummary, PodPlacement, summarized, workload_name, zone_of

S_contra = TypeVar("S_contra", contravariant=True)
S = TypeVar("S")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Decision = ScheduleResult | FitError | str
"""The result of an attempt, or the reason why a PreEnqueue plugin rejects the pod."""


class ReadDecision(Protocol[T_co]):
    """A function that extracts data from a decision while the cluster is still in the state of that decision."""

    def __call__(self, machine: SchedulingMachine, pod: Pod, decision: Decision) -> T_co: ...


class Decide(Protocol[S_contra]):
    """A function that schedules the pods under one configuration or version, and returns data about the decisions.

    The function must schedule at least the pods with these keys. The result contains the data by the pod's key, in the
    order of the attempts. For a pod with several attempts, the data describes the last attempt.
    """

    def __call__(self, side: S_contra, keys: Collection[str] | None, read: ReadDecision[T]) -> dict[str, T]: ...


@attrs.frozen
class PodOutcome:
    """The node that a pod gets, or "" and the reason why it gets no node."""

    node: str
    why: str = ""
    zone: str = attrs.field(default="", eq=False)
    workload: str = attrs.field(default="", eq=False)


PodOutcomes = Mapping[str, PodOutcome]

_NOT_TRIED: Final = PodOutcome("", "no attempt was made")


def pod_outcome(machine: SchedulingMachine, pod: Pod, decision: Decision) -> PodOutcome:
    if isinstance(decision, ScheduleResult):
        table = machine.cluster.table
        node = table.nodes[table.row_of[decision.node_name]]
        return PodOutcome(decision.node_name, "", zone_of(node), workload_name(pod))
    why = decision if isinstance(decision, str) else decision.message
    return PodOutcome("", why, "", workload_name(pod))


@attrs.frozen
class ChangedPod:
    """A pod whose node or message differs between the two runs. `pod`: namespace/name.

    `why_a`, `why_b`: kube-scheduler's message if the pod gets no node. `why` is the first nonempty message of the two.
    """

    pod: str
    a: Annotated[str, "the node that it gets first, and `b` the one it gets then; empty for none"]
    b: str
    why: str
    why_a: str
    why_b: str
    change: Annotated[str, "moved, placed, pending, or message: another reason for no node"]
    rules: Annotated[Sequence[str], "for versions: the responsible rules, found by turning them on one at a time"] = ()
    together: Annotated[bool, "true if only all rules together make the difference (no rules: not found)"] = False
    plugin: Annotated[str, "for configurations: the plugin whose scores changed most from a to b; may be empty"] = ""
    on_a: Annotated[int, "by how much the plugin prefers b to a first, and `on_b` then"] = 0
    on_b: int = 0


@attrs.frozen
class ResponsibleRule:
    rule: str
    where: str
    what: Annotated[str, "how the behavior of kube-scheduler differs in one of the versions"]
    since: str
    pods: int


@attrs.frozen
class ResponsiblePlugin:
    plugin: Annotated[str, "empty: the scores of both nodes do not explain it"]
    pods: int


@attrs.frozen
class PlacementComparison:
    """The result of a comparison, with the pods in the order of their attempts."""

    versions: Annotated[Sequence[str], "the two versions; empty for configurations"]
    configs: Annotated[Sequence[str], "the names of the two configurations; empty for versions"]
    pods: Annotated[int, "how many were tried"]
    different: Sequence[ChangedPod]
    pending: Annotated[Sequence[int], "how many pods have no node, first and then"]
    rules: Annotated[Sequence[ResponsibleRule], "for versions"]
    plugins: Annotated[Sequence[ResponsiblePlugin], "for configurations: of the pods that move"]
    summary: PlacementSummary


def changed_pod(key: str, a: PodOutcome | None, b: PodOutcome | None) -> ChangedPod:
    a, b = a or _NOT_TRIED, b or _NOT_TRIED
    if a.node != b.node:
        change = "moved" if a.node and b.node else "placed" if b.node else "pending"
    else:
        change = "message"
    return ChangedPod(key, a.node, b.node, a.why or b.why, a.why, b.why, change)


def differing_keys(first: PodOutcomes, second: PodOutcomes) -> list[str]:
    return [key for key in dict.fromkeys((*first, *second)) if first.get(key) != second.get(key)]


def comparison(
    first: PodOutcomes,
    second: PodOutcomes,
    different: Sequence[ChangedPod],
    *,
    versions: Sequence[str] = (),
    configs: Sequence[str] = (),
    rules: Sequence[ResponsibleRule] = (),
    plugins: Sequence[ResponsiblePlugin] = (),
) -> PlacementComparison:
    changed = {each.pod for each in different}
    keys = dict.fromkeys((*first, *second))
    placements = []
    for key in keys:
        a, b = first.get(key, _NOT_TRIED), second.get(key, _NOT_TRIED)
        workload = a.workload or b.workload
        placements.append(PodPlacement(key, workload, (a.node, b.node), (a.zone, b.zone), key in changed))
    pending = [sum(not outcome.node for outcome in outcomes.values()) for outcomes in (first, second)]
    return PlacementComparison(versions, configs, len(keys), different, pending, rules, plugins, summarized(placements))


def compare_configs(decide: Decide[S], sides: Sequence[S], names: Sequence[str]) -> PlacementComparison:
    """Compare the placements under two configurations, and find the plugin that causes each difference."""
    first, second = (decide(side, None, pod_outcome) for side in sides)
    changed = [changed_pod(key, first.get(key), second.get(key)) for key in differing_keys(first, second)]
    changed = [each for each in changed if each.change != "message"]
    moved = {each.pod: (each.a, each.b) for each in changed if each.change == "moved"}

    def preferences(machine: SchedulingMachine, pod: Pod, decision: Decision) -> dict[str, int] | None:
        return _preferences(machine, pod, decision, moved.get(pod.key))

    on_a, on_b = (decide(side, moved, preferences) if moved else {} for side in sides)
    different = [_with_plugin(each, on_a.get(each.pod), on_b.get(each.pod)) for each in changed]
    counts: dict[str, int] = {}
    for each in different:
        if each.change == "moved":
            counts[each.plugin] = counts.get(each.plugin, 0) + 1
    plugins = [ResponsiblePlugin(*each) for each in sorted(counts.items(), key=lambda each: (-each[1], each[0]))]
    return comparison(first, second, different, configs=names, plugins=plugins)


def _preferences(
    machine: SchedulingMachine, pod: Pod, decision: Decision, nodes: tuple[str, str] | None
) -> dict[str, int] | None:
    """Return each plugin's weighted score of the second node minus that of the first; None unless both nodes fit."""
    if nodes is None or not isinstance(decision, ScheduleResult) or decision.totals is None:
        return None
    feasible, rows = decision.feasible.tolist(), machine.cluster.table.row_of
    if not all(rows.get(name) in feasible for name in nodes):
        return None
    places = [feasible.index(rows[name]) for name in nodes]
    ranking = machine.schedulers[pod.scheduler_name].ranking
    scores: Scores = drive(ranking.details(decision.state, pod, decision.feasible))
    return {plugin: int(weighted[places[1]] - weighted[places[0]]) for plugin, weighted in scores.weighted.items()}


def _with_plugin(each: ChangedPod, on_a: Mapping[str, int] | None, on_b: Mapping[str, int] | None) -> ChangedPod:
    if on_a is None or on_b is None:
        return each
    changed = {name: on_b.get(name, 0) - on_a.get(name, 0) for name in {*on_a, *on_b}}
    plugin = max(sorted(changed), key=lambda name: changed[name], default="")
    if not plugin or changed[plugin] <= 0:
        return each
    return attrs.evolve(each, plugin=plugin, on_a=on_a.get(plugin, 0), on_b=on_b.get(plugin, 0))
