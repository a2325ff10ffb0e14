"""Data of the tools' results for programs, as classes: a client gets their JSON Schemas with the list of tools."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import attrs

from kschedd.answers import ABSENT, Absent

Pending = Annotated[int, "number of pods without a node"]


@attrs.frozen
class NoData:
    """The data of a tool whose result is only text."""


NO_DATA: Final = NoData()


@attrs.frozen
class OverviewData:
    pending: Pending
    nodes: Annotated[int, "number of nodes"]


@attrs.frozen
class ChangedData:
    pending: Pending


@attrs.frozen
class ExpectedData:
    met: Annotated[bool, "whether the condition is true"]


@attrs.frozen
class SuggestedStep:
    command: Annotated[str, "an argument `command` of plan and change"]
    input: Annotated[str, "an argument `input` of plan and change"]


@attrs.frozen
class Suggestion:
    """A change that was tested on a copy of the cluster."""

    sentence: str
    placed: Annotated[str, "the number of pods of the workload that it places"]
    displaced: Annotated[Sequence[str], "pods that it would remove from their nodes"]
    steps: Sequence[SuggestedStep]


@attrs.frozen(kw_only=True)
class ExplainedData:
    """The last four are absent if the pod has a node, or if a past attempt is explained."""

    pod: str
    node: Annotated[str | None, "the pod's node; null if the pod has none"]
    would_be_on: Annotated[str | None, "the node that the pod would get; null if there is none, or several are equal"]
    suggestions: Sequence[Suggestion]
    workload: Annotated[Mapping[str, Any] | Absent, "kind, namespace and name"] = ABSENT
    cause: Annotated[Mapping[str, Any] | Absent, "code, message, objects, fields, evidence"] = ABSENT
    also: Annotated[Sequence[Mapping[str, Any]] | Absent, "further causes"] = ABSENT
    confidence: Annotated[str | Absent, "certain or likely"] = ABSENT


@attrs.frozen
class PlannedData:
    fits: Annotated[bool, "whether all pods have a place afterwards"]
    pods: Annotated[Mapping[str, int], "number of changed pods by kind of change, such as moved, placed, pending"]


@attrs.frozen
class CheckedData:
    fits: Annotated[bool, "whether all manifests are valid and all their pods fit"]
    unplaced: Annotated[Sequence[str], "pods that stay pending, as namespace/name"]


@attrs.frozen
class CapacityData:
    fits: Annotated[Mapping[str, int], "number of further pods that fit, by the name of the workload"]


@attrs.frozen
class NodesNeededData:
    nodes: Annotated[Mapping[str, int], "number of further nodes by the name of the shape"]


@attrs.frozen
class ScenarioData:
    failed: Annotated[Sequence[int], "numbers of the steps that failed, from 1 on"]


@attrs.frozen(kw_only=True)
class PageData:
    """The position of the page, which every tool adds to its data."""

    total: Annotated[int | Absent, "number of lines of the whole result"] = ABSENT
    shown: Annotated[int | Absent, "number of lines on this page"] = ABSENT
    next_cursor: Annotated[int | Absent, "the argument `cursor` of the next page; absent on the last one"] = ABSENT
