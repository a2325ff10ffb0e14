"""What the methods over nodes answer."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import attrs

Text = Annotated[str, "text"]
Amounts = Mapping[Annotated[str, "resource"], Sequence[int]]


@attrs.frozen
class UsageAnswer:
    """Columns, the same node at the same place in each."""

    nodes: Annotated[Sequence[Text], "by name"]
    zones: Sequence[Text]
    cordoned: Sequence[bool]
    pods: Sequence[int]
    allowed_pods: Sequence[int]
    allocatable: Annotated[Amounts, "CPU in millicores, all else in units or bytes"]
    requested: Annotated[Amounts, "as allocatable; of resources that no pod has asked for there is nothing"]


@attrs.frozen
class ZoneAnswer:
    zone: str
    region: str
    state: str
    ready: int
    not_ready: int
    rate: Annotated[float, "nodes per second"]
    waiting: Annotated[Sequence[Annotated[str, "node"]], "the nodes that wait for a taint"]


@attrs.frozen
class UpcomingAnswer:
    node: str
    zone: str
    next: Annotated[str, "`Unknown` or `NoExecute`"]
    at: Annotated[str | None, "in RFC 3339, null for a rate of 0"]


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
    pods: Annotated[Sequence[LeavingPod], "the next first"]
