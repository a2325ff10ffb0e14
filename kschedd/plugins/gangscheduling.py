"""GangScheduling: of a PodGroup with the policy gang, at least `minCount` pods are placed at once, or none.

PreEnqueue keeps a pod out of the active queue until its PodGroup is there, and as many pods as it needs. Permit has a
pod wait on its node until so many are scheduled, then lets all of them go. In between stands the cycle of the group
(`kschedd.scheduling.gangs.cycle`), which asks Permit about each pod on trial.

Rules: gang_scheduling, at every extension point: 1.34 does not have the plugin.
Source: Kubernetes v1.36.3, plugins/gangscheduling/gangscheduling.go.
Units: seconds.
"""

import re
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
from kschedd.framework.remedies import Remedy, RemedyContext
from kschedd.framework.status import Code, Status, error, unresolvable

PERMIT_TIMEOUT_S: Final = 300.0

NOT_ENOUGH: Final = "waiting for minCount pods from a gang to appear in scheduling queue"
NOT_SCHEDULED: Final = "waiting for minCount pods from a gang to be scheduled"


@attrs.frozen(eq=False)
class GangScheduling:
    name: ClassVar = "GangScheduling"
    rule_of_point: ClassVar = {"pre_enqueue": "gang_scheduling", "permit": "gang_scheduling"}
    _handle: Handle
    _groups: PodGroups

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls(handle, handle.shared(PodGroups))

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
        if wanted and len(self._groups.pods(key)) < wanted:
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

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [
            on(EventResource.POD, ActionType.ADD, _after_pod, by_signature=True),
            on(CustomResource(KIND), ActionType.ADD, _after_group, by_signature=True),
        ]

    def remedies(self, context: RemedyContext, row: int | None, status: Status) -> list[Remedy]:
        key = context.pod.pod_group
        group = self._groups.object(key)
        if group is None:
            missing = re.fullmatch(
                r'waiting for pods\'s pod group "(.*)" to appear in scheduling queue', status.message
            )
            return [] if missing is None else [Remedy(f"the PodGroup {missing[1]} were created", 1)]
        lacks = min_count(group) - len(self._groups.pods(key))
        return [Remedy(f"PodGroup {group.name} had {lacks} more pods", 1)] if lacks > 0 else []


def _after_pod(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QUEUE if pod.pod_group and pod.pod_group == new.pod_group else QUEUE_SKIP


def _after_group(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QUEUE if isinstance(new, Object) and new.key == pod.pod_group else QUEUE_SKIP
