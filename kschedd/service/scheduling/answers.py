"""Answers of the methods for the scheduler, except explanations."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import attrs

from kschedd.answers import ABSENT, Absent
from kschedd.explain.answers import DecisionAnswer
from kschedd.scheduling.stops.view import StopAnswer


@attrs.frozen(kw_only=True)
class StatusAnswer:
    active: Annotated[int, "numbers of pods by sub-queue"]
    backoff: int
    error_backoff: int
    unschedulable: int
    gated: int
    pending_group: int = 0
    incomplete_group: int = 0
    in_flight: int
    waiting: Annotated[int, "pods waiting at Permit"]
    binding: Annotated[int, "pods between decision and binding, including those at Permit"]
    scheduled: Annotated[int, "pods bound since the start"]
    failed_attempts: Annotated[int, "since the start"]
    decisions_per_s: float
    last_decisions: list[DecisionAnswer]
    nodes: Annotated[int, "nodes in the scheduler's cache"]
    pods: Annotated[int, "pods with a node, assigned or reserved"]
    paused: Annotated[bool, "the debugger has stopped scheduling"]
    stopped_at: Annotated[StopAnswer | None, "as `stopped` in `debug.state`"]
    speed: Annotated[float, "cluster seconds per real second, 0 for virtual time"]
    virtual_time: Annotated[str | None, "the time if it is virtual, else null"]
    ahead_s: Annotated[int, "seconds by which real time is ahead of the machine's clock"]


@attrs.frozen
class WeightAnswer:
    before: int
    after: int


Text = Annotated[str, "text"]
PluginName = Annotated[str, "plugin"]
Place = Annotated[str, "place"]
Key = Annotated[str, "namespace/name"]


# -- the configuration ------------------------------------------------------------------------------------------


@attrs.frozen
class PluginOfPoint:
    name: str
    weight: int | Absent = ABSENT


@attrs.frozen
class ProfileAnswer:
    schedulerName: str
    percentageOfNodesToScore: int | None
    plugins: Annotated[Mapping[Annotated[str, "point"], Sequence[PluginOfPoint]], "plugins in calling order"]
    pluginConfig: Mapping[Annotated[str, "name"], Annotated[Any, "args"]]


@attrs.frozen
class ConfigAnswer:
    profiles: Sequence[ProfileAnswer]
    percentageOfNodesToScore: int | None
    podInitialBackoffSeconds: int
    podMaxBackoffSeconds: int
    parallelism: int
    featureGates: Mapping[Annotated[str, "gate"], bool]


# -- time -------------------------------------------------------------------------------------------------------


@attrs.frozen
class TimeAnswer:
    now_s: Annotated[float, "the cluster's time, in seconds since the epoch"]
    time: Annotated[str, "the time as text"]
    speed: Annotated[float, "cluster seconds per real second, 0 for virtual time"]
    virtual: Annotated[bool, "time stands still until it is moved"]
    next_s: Annotated[float | None, "the earliest time that a task waits for, null if there is none"]
    ahead_s: Annotated[int, "seconds by which real time is ahead of the machine's clock"]


@attrs.frozen
class MovedTime(TimeAnswer):
    moved: Annotated[str | None, "null until the last item, then `reached`, or `stopped` by the debugger"]


# -- the queue --------------------------------------------------------------------------------------------------


@attrs.frozen
class QueuedAnswer:
    key: str
    place: str
    priority: int
    attempts: int
    since_s: Annotated[float, "waiting time in seconds"]
    backoff_until_s: Annotated[float | None, "remaining backoff (null: none)"]
    unschedulable_plugins: Sequence[PluginName]
    pending_plugins: Sequence[PluginName]
    gated_by: str
    nominated_node: str
    message: Annotated[str, "message of its PodScheduled condition"]


@attrs.frozen
class QueueAnswer:
    counts: Mapping[Place, int]
    pods: Sequence[QueuedAnswer]


@attrs.frozen
class MoveAnswer:
    time_s: Annotated[float, "in seconds since the epoch"]
    time: str
    from_: str
    to: str
    event: Annotated[str, "the event that moved the pod"]
    plugin: Annotated[str, "the plugin whose hint decided, or which gates it"]
    seen: Annotated[str, "the event that occurred while it was in flight"]


@attrs.frozen(kw_only=True)
class WayAnswer:
    """A pod's moves between sub-queues. After the pod has left the queue, only `place` and `moves` are set."""

    key: str
    place: Annotated[str, "`outside` if it has left the queue; optional fields are then absent"]
    priority: int | Absent = ABSENT
    attempts: int | Absent = ABSENT
    since_s: Annotated[float | Absent, "waiting time in seconds"] = ABSENT
    backoff_until_s: Annotated[float | Absent | None, "remaining backoff (null: none)"] = ABSENT
    unschedulable_plugins: Sequence[PluginName] | Absent = ABSENT
    pending_plugins: Sequence[PluginName] | Absent = ABSENT
    gated_by: str | Absent = ABSENT
    nominated_node: str | Absent = ABSENT
    message: Annotated[str | Absent, "message of its PodScheduled condition"] = ABSENT
    first_attempt: Annotated[str | None, "according to the recorded history (null: none)"]
    held_s: Annotated[Mapping[Place, float], "seconds in each sub-queue, according to the recorded history"]
    history: Sequence[MoveAnswer]


@attrs.frozen
class ActivatedAnswer:
    moved: Annotated[Sequence[Key], "the pods that entered the active queue"]


@attrs.frozen
class PlacedAnswer:
    pod: str
    place: Annotated[
        str,
        "the resulting sub-queue: a gated pod stays gated, and a pod that failed with an error backs off in "
        "`error_backoff`",
    ]


@attrs.frozen
class WaitingAnswer:
    pod: str
    node: str
    plugins: Mapping[Annotated[str, "name"], Annotated[float, "seconds left"]]


@attrs.frozen
class DecidedAnswer:
    pod: str
    decided: Annotated[bool, "whether the pod's wait is over"]


# -- the debugger -----------------------------------------------------------------------------------------------


@attrs.frozen
class DeletedBreakpoint:
    id: int


@attrs.frozen
class PodAnswer:
    pod: str


@attrs.frozen
class VetoedNode:
    pod: str
    node: str


@attrs.frozen
class ForcedNode(VetoedNode):
    reasons: Annotated[Sequence[Text], "reasons against the node"]


@attrs.frozen
class ReplacedScoreAnswer(VetoedNode):
    plugin: str
    score: int


# -- the descheduler --------------------------------------------------------------------------------------------


@attrs.frozen
class DescheduledAnswer:
    namespace: str
    name: str
    node: str
    strategy: str
    profile: str


@attrs.frozen
class RefusedAnswer(DescheduledAnswer):
    why: Annotated[
        str,
        "PDB, MultiplePDBs, node limit, namespace limit, total limit, not found (the strategy chose it twice), or the "
        "API server's message",
    ]


@attrs.frozen
class DeschedulingAnswer:
    nodes: Annotated[int, "number of nodes that are ready and selected; with fewer than 2, nothing is evicted"]
    evicted: Annotated[Sequence[DescheduledAnswer], "in order of eviction"]
    refused: Annotated[Sequence[RefusedAnswer], "evictions that a strategy requested in vain"]
