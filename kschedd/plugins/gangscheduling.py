"""GangScheduling: either at least `minCount` pods of a PodGroup with the policy `gang` are scheduled, or none.

PreEnqueue keeps a pod out of the active queue until its PodGroup and the required number of pods exist. Permit lets a
pod wait on its node until enough pods are scheduled, and then allows all of them. The group's scheduling cycle
(`kschedd.scheduling.gangs`) runs between PreEnqueue and Permit. In 1.36 the cycle calls Permit for each tentatively
placed pod. From 1.37 on, the cycle checks after each pod whether the gang can still succeed (`placement_feasible`).

Rules: gang_scheduling, at every extension point (1.34 lacks this plugin), and gangs_counted.
Source: Kubernetes v1.36.3 and v1.37.2, plugins/gangscheduling/gangscheduling.go.
Units: seconds.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import KIND, PodGroups, min_count
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    CustomResource,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.handle import Handle
from kschedd.framework.status import Code, Status, error, unresolvable, unschedulable

PERMIT_TIMEOUT_S: Final = 300.0

NOT_ENOUGH: Final = "waiting for minCount pods from a gang to appear in scheduling queue"
NOT_SCHEDULED: Final = "waiting for minCount pods from a gang to be scheduled"


@attrs.frozen(eq=False)
class GangScheduling:
    name: ClassVar = "GangScheduling"
    rule_of_point: ClassVar = {"pre_enqueue": "gang_scheduling", "permit": "gang_scheduling"}
    _handle: Handle
    _groups: PodGroups
    _counts: bool  # the rule gangs_counted

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls(handle, handle.shared(PodGroups), handle.rules.gangs_counted)

    def idle_for(self, pod: Pod) -> Sequence[str]:
        return () if pod.signature.spec.pod_group_name else ("binding",)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        key = pod.pod_group
        if not key:
            return None
        group = self._groups.object(key)
        if group is None:
            name = pod.pod_spec.pod_group_name
            return unresolvable(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue')
        wanted = min_count(group)
        if len(self._groups.pods(key)) + self._handle.leaving(key) < wanted:
            return unresolvable(NOT_ENOUGH)
        return None

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status | tuple[Status, float] | None:
        key = pod.pod_group
        if not key:
            return None
        group = self._groups.object(key)
        if group is None:
            why = f'podgroup.scheduling.k8s.io "{pod.pod_spec.pod_group_name}" not found'
            return error(f"failed to get podGroup {key}: {why}")
        wanted = min_count(group)
        if not wanted:
            return None
        scheduled = self._groups.scheduled(key)
        if len(scheduled) < wanted:
            self._handle.activate(self._groups.waiting_for_node(key))
            return Status(Code.WAIT, (NOT_SCHEDULED,)), PERMIT_TIMEOUT_S
        for other in scheduled:
            self._handle.allow(other.uid, self.name)
        return None

    def placement_feasible(self, group: Object, scheduled: int, remaining: int) -> Status | None:
        """Return Wait if more pods must be placed, or Unschedulable if too few pods are left."""
        needed = min_count(group) or 1
        if scheduled >= needed:
            return None
        so_far = f"{scheduled} scheduled, {remaining} remaining"
        if scheduled + remaining < needed:
            return unschedulable(f"minCount ({needed}) cannot be satisfied: {so_far}")
        return Status(Code.WAIT, (f"minCount ({needed}) is not yet satisfied: {so_far}",))

    def events_to_register(self) -> list[ClusterEventWithHint]:
        registered = [
            on(EventResource.POD, ActionType.ADD, _after_pod, by_signature=True),
            on(CustomResource(KIND), ActionType.ADD, _after_group, by_signature=True),
        ]
        if self._counts:
            registered.append(on(CustomResource(KIND), ActionType.UPDATE, _after_smaller_group, by_signature=True))
        return registered


def _after_pod(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QUEUE if pod.pod_group and pod.pod_group == new.pod_group else QUEUE_SKIP


def _after_group(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QUEUE if isinstance(new, Object) and new.key == pod.pod_group else QUEUE_SKIP


def _after_smaller_group(pod: Pod, old: Any, new: Any) -> QueueingHint:
    if not isinstance(new, Object) or new.key != pod.pod_group or not isinstance(old, Object):
        return QUEUE_SKIP
    return QUEUE if 0 < min_count(new) < min_count(old) else QUEUE_SKIP
