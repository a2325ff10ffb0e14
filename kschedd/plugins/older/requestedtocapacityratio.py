"""RequestedToCapacityRatio: scores nodes by a curve over their utilization.

The plugin belongs to older releases; now NodeResourcesFit has the strategy RequestedToCapacityRatio. Source: Kubernetes
v1.22, plugins/noderesources/requested_to_capacity_ratio.go. Units: the curve's scores are 0 to 10 and are multiplied by
10; node scores are 0 to 100.
"""

from typing import ClassVar, Self

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.config.scoring_args import MAX_POINT_SCORE, ResourceWeight
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.plugins.resources.noderesources_args import RequestedToCapacityRatioArgs
from kschedd.plugins.resources.noderesources_older import broken_linear, requested_to_capacity_ratio


@attrs.frozen(eq=False)
class RequestedToCapacityRatio:
    name: ClassVar = "RequestedToCapacityRatio"
    args_type: ClassVar = RequestedToCapacityRatioArgs
    depends_on: ClassVar = frozenset({"node", "requested"})
    resources: tuple[ResourceWeight, ...]
    curve: Ints

    @classmethod
    def from_args(cls, args: RequestedToCapacityRatioArgs, handle: Handle) -> Self:
        return cls(args.resources, broken_linear(args.shape, MAX_NODE_SCORE // MAX_POINT_SCORE))

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return requested_to_capacity_ratio(pod, table, rows, self.resources, self.curve)
