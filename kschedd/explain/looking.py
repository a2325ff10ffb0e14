"""What a remedy looks at, and what it says."""

from collections.abc import Mapping

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.cache.table import NodeTable
from kschedd.framework.cycle_state import CycleState
from kschedd.scheduling.profile import RunningProfile


@attrs.frozen
class Change:
    """Completes the sentence "it would fit if ..."; `cost` only orders."""

    text: str
    cost: float


@attrs.frozen(eq=False)
class Looking:
    cluster: Cluster
    profile: RunningProfile
    state: CycleState  # of the attempt that was judged
    pod: Pod

    @property
    def table(self) -> NodeTable:
        return self.cluster.table

    def name(self, row: int) -> str:
        return self.table.names[row]

    def labels(self, row: int) -> Mapping[str, str]:
        node = self.table.nodes[row]
        return {} if node is None else node.labels

    def number(self, row: int, key: str) -> int:
        """The number of the row's value of a label, as counts by domain have it; -1 if it has none."""
        return int(self.table.label(key).ids[row])

    def domain(self, row: int, key: str) -> list[int]:
        """The rows in the same topology domain, the row itself among them; none if it has no such label."""
        ids = self.table.label(key).ids
        if ids[row] < 0:
            return []
        same = self.table.order
        return [int(other) for other in same[ids[same] == ids[row]]]
