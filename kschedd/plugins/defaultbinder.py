"""DefaultBinder: binds the pod to its node through the Binding subresource.

Rules: bindings_retried.
Source: Kubernetes v1.34 and v1.37, plugins/defaultbinder/default_binder.go, scheduler/util/utils.go (BindPod).
"""

from typing import ClassVar, Self

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.writes import Bind, Plan
from kschedd.store.writes import MOST_TRIES


@attrs.frozen
class DefaultBinder:
    name: ClassVar = "DefaultBinder"
    _tries: int = 1

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls(MOST_TRIES if handle.rules.bindings_retried else 1)

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Plan:
        return Plan((Bind(pod.namespace, pod.name, pod.uid, node_name, self._tries),))
