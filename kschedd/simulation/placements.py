"""Counts of pods by namespace, workload and zone, which summarize answers about many pods."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import attrs

from kschedd.api.nodes import BETA_ZONE_LABEL, ZONE_LABEL, Node
from kschedd.api.pods import Pod
from kschedd.controllers.templates import TEMPLATE_HASH


@attrs.frozen
class PodPlacement:
    """A pod with its node in two states of the cluster.

    The node is "" if the pod is pending, and None if the pod does not exist.
    """

    key: str
    workload: str
    nodes: tuple[str | None, str | None]
    zones: tuple[str, str]
    changed: bool = False


@attrs.frozen
class GroupCounts:
    """Counts of the pods of a namespace or of a workload."""

    name: str
    pods: int
    changed: int
    pending_before: Annotated[int, "pods without a node in the first state, and `pending` in the second"]
    pending: int


@attrs.frozen
class ZoneCounts:
    zone: Annotated[str, "empty: nodes without a zone"]
    before: Annotated[int, "pods in this zone in the first state, and `after` in the second"]
    after: int


@attrs.frozen
class PlacementSummary:
    """Counts of pods. Groups are sorted by changed pods and then by pending pods, most first."""

    namespaces: Sequence[GroupCounts]
    workloads: Annotated[Sequence[GroupCounts], "by the kind and name of the controller, empty: none"]
    zones: Annotated[Sequence[ZoneCounts], "in alphabetical order"]


def summarized(pods: Iterable[PodPlacement]) -> PlacementSummary:
    namespaces: dict[str, list[PodPlacement]] = {}
    workloads: dict[str, list[PodPlacement]] = {}
    zones: dict[str, list[int]] = {}
    for pod in pods:
        namespaces.setdefault(pod.key.partition("/")[0], []).append(pod)
        workloads.setdefault(pod.workload, []).append(pod)
        for side, (node, zone) in enumerate(zip(pod.nodes, pod.zones, strict=True)):
            if node:
                zones.setdefault(zone, [0, 0])[side] += 1
    return PlacementSummary(
        _groups(namespaces), _groups(workloads), [ZoneCounts(zone, *counts) for zone, counts in sorted(zones.items())]
    )


def _groups(members: dict[str, list[PodPlacement]]) -> list[GroupCounts]:
    groups = [
        GroupCounts(
            name,
            len(pods),
            sum(pod.changed for pod in pods),
            *(sum(pod.nodes[side] == "" for pod in pods) for side in (0, 1)),
        )
        for name, pods in members.items()
    ]
    return sorted(groups, key=lambda group: (-group.changed, -group.pending, -group.pods, group.name))


def workload_name(pod: Pod) -> str:
    """Return the kind and name of the pod's controller, or "".

    For a ReplicaSet whose name ends with the pod's template hash, the controller is its Deployment.
    """
    kind, _, name = (workload_of(pod) or "").partition("/")
    return f"{kind} {pod.namespace}/{name}" if kind else ""


def workload_of(pod: Pod) -> str | None:
    """Return the pod's controller as kind/name (for a ReplicaSet, its Deployment), or None."""
    owner = pod.owner
    if owner is None:
        return None
    kind, name = owner.kind, owner.name
    suffix = f"-{pod.labels.get(TEMPLATE_HASH)}"
    if kind == "ReplicaSet" and name.endswith(suffix):
        kind, name = "Deployment", name.removesuffix(suffix)
    return f"{kind}/{name}"


def zone_of(node: Node | None) -> str:
    """Return the zone in the labels of a node, or ""."""
    return "" if node is None else str(node.labels.get(ZONE_LABEL) or node.labels.get(BETA_ZONE_LABEL) or "")
