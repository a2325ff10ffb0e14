"""What the methods over the scheduler answer, besides explanations."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import attrs

from kschedd.answers import ABSENT, Absent
from kschedd.explain.answers import DecisionAnswer
from kschedd.scheduling.stops.view import StopAnswer


@attrs.frozen(kw_only=True)
class StatusAnswer:
    active: Annotated[int, "the places of the queue, each with its number of pods"]
    backoff: int
    error_backoff: int
    unschedulable: int
    gated: int
    pending_group: int = 0
    incomplete_group: int = 0
    in_flight: int
    waiting: Annotated[int, "pods that wait at Permit"]
    binding: Annotated[int, "pods between decision and binding, those that wait at Permit included"]
    scheduled: Annotated[int, "pods that were bound since the start"]
    failed_attempts: Annotated[int, "since the start"]
    decisions_per_s: float
    last_decisions: list[DecisionAnswer]
    nodes: Annotated[int, "those that the scheduler sees"]
    pods: Annotated[int, "those that have a node, or have one reserved"]
    paused: Annotated[bool, "the debugger has stopped scheduling"]
    stopped_at: Annotated[StopAnswer | None, "where, as `stopped` of `debug.state` does"]
    speed: Annotated[float, "seconds of the cluster in a real one, 0 where time is virtual"]
    virtual_time: Annotated[str | None, "the time where it is virtual, else null"]


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
    plugins: Annotated[
        Mapping[Annotated[str, "point"], Sequence[PluginOfPoint]], "they stand in the order of their calls"
    ]
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
    time: Annotated[str, "the same as text"]
    speed: Annotated[float, "seconds of it in a real one, 0 where it is virtual"]
    virtual: Annotated[bool, "it stands still until it is moved"]
    next_s: Annotated[float | None, "the next time that something waits for, null if nothing does"]


@attrs.frozen
class MovedTime(TimeAnswer):
    moved: Annotated[str | None, "null until the last, then `reached`, or `stopped` by the debugger"]


# -- the queue --------------------------------------------------------------------------------------------------


@attrs.frozen
class QueuedAnswer:
    key: str
    place: str
    priority: int
    attempts: int
    since_s: Annotated[float, "for how long it has waited"]
    backoff_until_s: Annotated[float | None, "how long its backoff still lasts (null: it has none)"]
    unschedulable_plugins: Sequence[PluginName]
    pending_plugins: Sequence[PluginName]
    gated_by: str
    nominated_node: str
    message: Annotated[str, "what its PodScheduled condition says"]


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
    event: Annotated[str, "what moved the pod"]
    plugin: Annotated[str, "whose hint decided, or who gates it"]
    seen: Annotated[str, "the event that came while it was in flight"]


@attrs.frozen(kw_only=True)
class WayAnswer:
    """A pod's way through the queue. Of one that has left it there is its place, and what is still recorded."""

    key: str
    place: Annotated[str, "`outside` where it has left the queue; then what may be absent is"]
    priority: int | Absent = ABSENT
    attempts: int | Absent = ABSENT
    since_s: Annotated[float | Absent, "for how long it has waited"] = ABSENT
    backoff_until_s: Annotated[float | Absent | None, "how long its backoff still lasts (null: it has none)"] = ABSENT
    unschedulable_plugins: Sequence[PluginName] | Absent = ABSENT
    pending_plugins: Sequence[PluginName] | Absent = ABSENT
    gated_by: str | Absent = ABSENT
    nominated_node: str | Absent = ABSENT
    message: Annotated[str | Absent, "what its PodScheduled condition says"] = ABSENT
    first_attempt: Annotated[str | None, "as far as history goes (null: not yet)"]
    held_s: Annotated[Mapping[Place, float], "how many seconds each place held it, as far as history goes"]
    history: Sequence[MoveAnswer]


@attrs.frozen
class ActivatedAnswer:
    moved: Annotated[Sequence[Key], "the pods that got into the active queue"]


@attrs.frozen
class PlacedAnswer:
    pod: str
    place: Annotated[
        str,
        "where it is then: a gated pod stays gated, and one that has failed with an error backs off in `error_backoff`",
    ]


@attrs.frozen
class WaitingAnswer:
    pod: str
    node: str
    plugins: Mapping[Annotated[str, "name"], Annotated[float, "seconds left"]]


@attrs.frozen
class DecidedAnswer:
    pod: str
    decided: Annotated[bool, "the pod waits no more"]


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
    reasons: Annotated[Sequence[Text], "what speaks against it"]


@attrs.frozen
class ReplacedScoreAnswer(VetoedNode):
    plugin: str
    score: int
