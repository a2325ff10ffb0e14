"""DefaultBinder: binds the pod to its node through the API server's Binding.

Source: Kubernetes v1.34, plugins/defaultbinder/default_binder.go.
"""

from typing import ClassVar, Self

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.writes import Bind, Plan


@attrs.frozen
class DefaultBinder:
    name: ClassVar = "DefaultBinder"

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls()

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Plan:
        return Plan((Bind(pod.namespace, pod.name, pod.uid, node_name),))
