"""SchedulingGates: PreEnqueue rejects a pod until its last scheduling gate is removed.

Source: Kubernetes v1.34, plugins/schedulinggates/scheduling_gates.go.
"""

from typing import Any, ClassVar, Self

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.handle import Handle
from kschedd.framework.status import Status, unresolvable


@attrs.frozen
class SchedulingGates:
    name: ClassVar = "SchedulingGates"

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls()

    def pre_enqueue(self, pod: Pod) -> Status | None:
        gates = pod.pod_spec.scheduling_gates
        if not gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gates)}]")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        gates_gone = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        return [on(EventResource.POD, gates_gone, self._after_gates_gone, by_signature=True)]

    def _after_gates_gone(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        return QUEUE if new is not None and new.uid == pod.uid else QUEUE_SKIP
