"""What the methods over the scheduler answer, besides explanations."""

from typing import Annotated, Any

import attrs

from kschedd.explain.answers import DecisionAnswer


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
    stopped_at: Annotated[Any, "where, as `stopped` of `debug.state` does"]
    speed: Annotated[float, "seconds of the cluster in a real one, 0 where time is virtual"]
    virtual_time: Annotated[str | None, "the time where it is virtual, else null"]


@attrs.frozen
class WeightAnswer:
    before: int
    after: int
