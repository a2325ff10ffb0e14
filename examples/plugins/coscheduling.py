"""Coscheduling: either all pods of a PodGroup are placed together, or none of them keeps its node.

    apiVersion: scheduling.x-k8s.io/v1alpha1
    kind: PodGroup                                  # its CustomResourceDefinition: examples/plugins/crds.yaml
    metadata: {name: training}
    spec: {minMember: 4, scheduleTimeoutSeconds: 30}

A pod refers to a group in its namespace by the label `scheduling.x-k8s.io/pod-group`. A pod with a chosen node waits at
Permit until `minMember` pods of the group have a node; then all of them are bound. On a timeout, or if one of them fits
on no node, all waiting pods release their nodes. A group is queued as a unit: by priority, then by its age.

    profiles:
      - plugins:
          queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
          multiPoint: {enabled: [{name: Coscheduling}]}
        pluginConfig:
          - {name: Coscheduling, args: {permitWaitingTimeSeconds: 60}}

Source: kubernetes-sigs/scheduler-plugins, pkg/coscheduling (the behavior, not the code).
Owns: the pods of each group observed so far, and those that were rejected because others were missing.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, Self

import attrs

from kschedd.plugin import (
    ActionType,
    ClusterEventWithHint,
    Code,
    CustomResource,
    CycleState,
    EventResource,
    Handle,
    Pod,
    PostFilterResult,
    QueueingHint,
    RawArgs,
    SchedulerCache,
    Status,
    on,
    parse_label_selector,
    spread_matcher,
    unresolvable,
)

GROUP: Final = "scheduling.x-k8s.io/pod-group"
KIND: Final = "PodGroup"
_CLOSE: Final = 0.1  # share of the group that may be missing without rejecting the other pods

Key = tuple[str, str]  # namespace and name of a group


def group_of(pod: Pod) -> Key | None:
    name = pod.labels.get(GROUP)
    return (pod.namespace, name) if name else None


@attrs.frozen
class GroupSpec:
    least: int
    timeout_s: float
    created: str


@attrs.define(eq=False)
class Coscheduling:
    name: ClassVar = "Coscheduling"
    _handle: Handle
    _timeout_s: float
    # pods of each group, by UID; a deleted pod may still be counted
    _seen: dict[Key, dict[str, Pod]] = attrs.field(factory=dict)
    # pods of each group that were rejected because others were missing
    _too_few: dict[Key, dict[str, Pod]] = attrs.field(factory=dict)

    @classmethod
    def from_args(cls, args: RawArgs, handle: Handle) -> Self:
        timeout_s = args.values.get("permitWaitingTimeSeconds", 60)
        if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= 86_400:
            raise ValueError(f"permitWaitingTimeSeconds: {timeout_s!r}: must be seconds, above 0 and up to 86400")
        return cls(handle, float(timeout_s))

    # -- the queue

    def sort_key(self, entry: Any) -> tuple[Any, ...]:
        """Sort by priority, then by the age of the group or the waiting time of a single pod; groups stay together."""
        pod = entry.pod
        group, spec = group_of(pod), self._spec(pod)
        if group is None or spec is None:
            return (-pod.priority, entry.timestamp, "", "")
        return (-pod.priority, _nanoseconds(spec.created), *group)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            on(EventResource.POD, ActionType.ADD, self._sibling),
            on(CustomResource(KIND), ActionType.ADD | ActionType.UPDATE),
        ]

    def _sibling(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        alike = new is not None and group_of(new) == group_of(pod)
        return QueueingHint.QUEUE if alike else QueueingHint.QUEUE_SKIP

    # -- an attempt

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Record the pods of each group; no pod is kept out of the queue."""
        group = group_of(pod)
        if group is not None:
            self._seen.setdefault(group, {})[pod.uid] = pod
        return None

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        group = group_of(pod)
        if group is None:
            return None
        spec = self._spec(pod)
        if spec is None:
            return unresolvable(f"cannot find PodGroup {group[1]} of this pod, or its minMember")
        waiting = sum(group_of(other) == group for other, _ in self._handle.waiting_pods())
        there = (
            len(self._seen.setdefault(group, {pod.uid: pod})) + self._placed(group) - waiting
        )  # those are among both
        if there < spec.least:
            self._too_few.setdefault(group, {})[pod.uid] = pod
            return unresolvable(
                f"cannot find enough sibling pods, current pods number: {there}, minMember of group: {spec.least}"
            )
        return None

    def post_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache, view: object) -> PostFilterResult:
        """Release the nodes of the group's waiting pods, because this pod is unschedulable.

        The group keeps its nodes if it is complete without this pod, or nearly complete.
        """
        group, spec = group_of(pod), self._spec(pod)
        if group is not None and spec is not None:
            missing = spec.least - self._placed(group)
            if missing > 0 and missing / spec.least > _CLOSE:
                self._give_back(group, f"PodGroup {group[1]} gets rejected since pod {pod.name} fits nowhere")
        return PostFilterResult(Status(Code.UNSCHEDULABLE))

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Reserve nothing; this method exists only because `unreserve` is not called without it."""
        return None

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        group, spec = group_of(pod), self._spec(pod)
        if group is None or spec is None:
            return None, 0.0
        placed = self._placed(group)  # includes this pod, which is assumed
        if placed < spec.least:
            self._handle.activate(list(self._too_few.pop(group, {}).values()))
            return Status(Code.WAIT, (f"{placed} of {spec.least} pods of {group[1]} have a node",)), spec.timeout_s
        for other, _ in self._handle.waiting_pods():
            if group_of(other) == group:
                self._handle.allow(other.uid, self.name)
        return None, 0.0

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        group = group_of(pod)
        if group is not None:
            self._give_back(group, f"rejection in Unreserve of pod {pod.name}")

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        group = group_of(pod)
        if group is not None:
            self._seen.get(group, {}).pop(pod.uid, None)  # from now on, the pod counts as placed

    # -- groups

    def _spec(self, pod: Pod) -> GroupSpec | None:
        """Return the pod's group; None without a group, or if its object is missing or invalid."""
        group = group_of(pod)
        found = self._handle.cluster.get(KIND, "/".join(group)) if group is not None else None
        spec = found.raw.get("spec") if found is not None else None
        if found is None or not isinstance(spec, Mapping):
            return None
        least, timeout_s = spec.get("minMember"), spec.get("scheduleTimeoutSeconds")
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            return None
        usable = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool) and timeout_s > 0
        created = str((found.raw.get("metadata") or {}).get("creationTimestamp") or "")
        return GroupSpec(least, float(timeout_s) if usable and timeout_s is not None else self._timeout_s, created)

    def _placed(self, group: Key) -> int:
        """Return how many of the group's pods have a node, including pods that wait at Permit."""
        namespace, name = group
        selector = parse_label_selector({"matchLabels": {GROUP: name}})
        counter = self._handle.cluster.counts.matching(spread_matcher(namespace, selector))
        return sum(counter.by_row.values())

    def _give_back(self, group: Key, why: str) -> None:
        for other, _ in self._handle.waiting_pods():
            if group_of(other) == group:
                self._handle.reject(other.uid, self.name, why)


def _nanoseconds(created: str) -> int:
    """Convert a creationTimestamp to a number that is comparable with an entry's; return 0 if it is invalid."""
    try:
        return int(datetime.fromisoformat(created).timestamp()) * 1_000_000_000
    except ValueError:
        return 0
