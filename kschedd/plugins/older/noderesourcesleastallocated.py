"""NodeResourcesLeastAllocated: prefers nodes with a low sum of requests.

The plugin belongs to older releases; now NodeResourcesFit has the strategy LeastAllocated. Source: Kubernetes v1.22,
plugins/noderesources/least_allocated.go.
Units: scores 0 to 100, the weighted mean of the resources' scores, truncated.
"""

from typing import ClassVar, Self

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.config.scoring_args import ResourceWeight
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.plugins.resources.noderesources_args import OlderScoringArgs
from kschedd.plugins.resources.noderesources_older import least_allocated


@attrs.frozen
class NodeResourcesLeastAllocated:
    name: ClassVar = "NodeResourcesLeastAllocated"
    args_type: ClassVar = OlderScoringArgs
    depends_on: ClassVar = frozenset({"node", "requested"})
    resources: tuple[ResourceWeight, ...]

    @classmethod
    def from_args(cls, args: OlderScoringArgs, handle: Handle) -> Self:
        return cls(args.resources)

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return least_allocated(pod, table, rows, self.resources)
