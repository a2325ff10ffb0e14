"""RequestedToCapacityRatioPriority: the priority function of a Policy, with its integer arithmetic from 0 to 10.

A node's raw score is the weighted mean of its resources' scores, rounded. Each resource's score is a whole number from
0 to 10, so a node that is 75 % used scores 7, not 75. The result is multiplied by 10, so that it is comparable with
scores from 0 to 100. A shape with scores above 10 uses the scale from 0 to 100, as in some Policy files.

Source: Kubernetes v1.16, algorithm/priorities/requested_to_capacity_ratio.go.
"""

from typing import ClassVar, Self

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.config.scoring_args import MAX_POINT_SCORE, ResourceWeight
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.plugins.resources.noderesources_args import RequestedToCapacityRatioPriorityArgs
from kschedd.plugins.resources.noderesources_older import broken_linear, requested_to_capacity_ratio


@attrs.frozen(eq=False)
class RequestedToCapacityRatioPriority:
    name: ClassVar = "RequestedToCapacityRatioPriority"
    args_type: ClassVar = RequestedToCapacityRatioPriorityArgs
    depends_on: ClassVar = frozenset({"node", "requested"})
    resources: tuple[ResourceWeight, ...]
    curve: Ints
    to_node_score: int

    @classmethod
    def from_args(cls, args: RequestedToCapacityRatioPriorityArgs, handle: Handle) -> Self:
        of_ten = max(point.score for point in args.shape) <= MAX_POINT_SCORE
        return cls(args.resources, broken_linear(args.shape, 1), MAX_NODE_SCORE // MAX_POINT_SCORE if of_ten else 1)

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return requested_to_capacity_ratio(pod, table, rows, self.resources, self.curve)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        return scores * self.to_node_score
