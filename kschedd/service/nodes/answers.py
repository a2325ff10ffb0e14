"""Answers of the methods on nodes."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import attrs

Text = Annotated[str, "text"]
Amounts = Mapping[Annotated[str, "resource"], Sequence[int]]


@attrs.frozen
class UsageAnswer:
    """The usage of the nodes, with one array per column. Each node has the same index in all arrays."""

    nodes: Annotated[Sequence[Text], "by name"]
    zones: Sequence[Text]
    cordoned: Sequence[bool]
    conditions: Annotated[
        Sequence[Text], "conditions that show a problem, such as NotReady or DiskPressure, joined by commas"
    ]
    taints: Annotated[Sequence[Text], "in the form key=value:effect, joined by commas"]
    pods: Sequence[int]
    allowed_pods: Sequence[int]
    allocatable: Annotated[Amounts, "CPU in millicores, other resources in units or bytes"]
    requested: Annotated[Amounts, "like allocatable; without resources that no pod has requested"]


@attrs.frozen
class ZoneAnswer:
    zone: str
    region: str
    state: str
    ready: int
    not_ready: int
    rate: Annotated[float, "nodes per second"]
    waiting: Annotated[Sequence[Annotated[str, "node"]], "nodes waiting for a taint"]


@attrs.frozen
class UpcomingAnswer:
    node: str
    zone: str
    next: Annotated[str, "`Unknown` or `NoExecute`"]
    at: Annotated[str | None, "in RFC 3339, null if the rate is 0"]


@attrs.frozen
class ZonesAnswer:
    zones: Sequence[ZoneAnswer]
    nodes: Sequence[UpcomingAnswer]


@attrs.frozen
class LeavingPod:
    namespace: str
    name: str
    node: str
    taints: Sequence[Annotated[str, "key"]]
    since: Annotated[str, "in RFC 3339"]
    at: Annotated[str, "in RFC 3339"]


@attrs.frozen
class LeavingAnswer:
    pods: Annotated[Sequence[LeavingPod], "earliest first"]
