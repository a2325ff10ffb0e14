"""Traces: nodes that exist from the start, and pods with the times of their creation and deletion.

The modules of `formats` convert files to this form, in which all objects are Kubernetes manifests.
"""

from collections.abc import Iterable
from typing import Any, Literal

import attrs

from kschedd.values import fast_frozen

Raw = dict[str, Any]

GPU_MILLI = "alibabacloud.com/gpu-milli"
GPU_MODEL = "alibabacloud.com/gpu-card-model"
NAMESPACE = "default"


@fast_frozen
class TracePod:
    """A pod of a trace."""

    key: str  # "namespace/name"
    raw: Raw
    created_s: float
    deleted_s: float | None  # None: never deleted
    scheduled_s: float | None  # time at which the recorded cluster scheduled the pod; None: never
    phase: str  # as in the trace


@fast_frozen
class TraceEvent:
    """A change at a time.

    A change of an object: The manifest of "apply" may also change an existing object.
    """

    time_s: float
    action: Literal["create", "apply", "delete"]
    key: str  # "namespace/name"
    raw: Raw | None = None
    kind: str = "Pod"


@attrs.frozen
class Trace:
    """The nodes, which exist from the start, and the pods; both are in the order of their files."""

    nodes: tuple[Raw, ...]
    pods: tuple[TracePod, ...]
    priorities: tuple[int, ...] = ()
    """Values of the priority classes that pods name."""
    groups: tuple[Raw, ...] = ()
    """PodGroups of the pods."""

    @property
    def objects(self) -> tuple[Raw, ...]:
        """Return the objects that exist at the start."""
        return (*map(priority_class, self.priorities), *self.groups, *self.nodes)

    @property
    def event_count(self) -> int:
        return len(self.pods) + sum(pod.deleted_s is not None for pod in self.pods)

    def events(self) -> Iterable[TraceEvent]:
        return events(self.pods)


@attrs.frozen
class ObjectTrace:
    """Nodes that exist from the start, and changes of objects of any kind. Controllers create the workloads' pods."""

    nodes: tuple[Raw, ...]
    changes: tuple[TraceEvent, ...]
    namespaces: tuple[Raw, ...] = ()
    """Namespaces that the trace itself does not create."""

    @property
    def objects(self) -> tuple[Raw, ...]:
        return (*self.namespaces, *self.nodes)

    @property
    def event_count(self) -> int:
        return len(self.changes)

    def events(self) -> Iterable[TraceEvent]:
        return self.changes


def events(pods: Iterable[TracePod]) -> list[TraceEvent]:
    """All creations and deletions, in order of time.

    At equal times, existing pods are deleted first, which frees resources. At equal times, new pods are created after
    these deletions, in file order. Finally, new pods that the trace deletes at their creation time are deleted.
    """
    ordered: list[tuple[float, int, int, TraceEvent]] = []
    for i, pod in enumerate(pods):
        created, deleted = pod.created_s, pod.deleted_s
        ordered.append((created, 1, i, TraceEvent(created, "create", pod.key, pod.raw)))
        if deleted is not None:
            turn = 0 if deleted > created else 2
            ordered.append((deleted, turn, i, TraceEvent(deleted, "delete", pod.key)))
    ordered.sort()  # time, turn and number are unique, so events are never compared
    return [event for _, _, _, event in ordered]


def priority_name(value: int) -> str:
    """Return the name of the priority class of a generated pod."""
    return f"priority-{value}"


def priority_class(value: int) -> Raw:
    """Return the priority class with this value."""
    meta = {"name": priority_name(value)}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": value}
