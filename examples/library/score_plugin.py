"""A score plugin of your own, compared with the default scheduler for ten seeds."""

from random import Random
from typing import Any, ClassVar

import kschedd
from kschedd.plugin import CycleState, NodeInfo, Pod


class FewestNodes:
    """A plugin that prefers nodes with pods, so that other nodes stay empty."""

    name: ClassVar = "FewestNodes"

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return 100 for a node with pods and 0 for an empty node."""
        return 100 if node.pods else 0


def nodes_in_use(seed: int, *, packing: bool) -> int:
    """Return the number of nodes with pods after scheduling the same random workload."""
    options: dict[str, Any] = {"plugins": [FewestNodes], "plugin_weights": {"FewestNodes": 100}} if packing else {}
    cluster = kschedd.Cluster(nodes=20, seed=seed, **options)
    drawn = Random(seed)
    cluster.apply([kschedd.pod(f"p{number}", cpu=f"{drawn.choice((100, 500, 1000))}m") for number in range(40)])
    return sum(each.pods > 0 for each in cluster.nodes)


for seed in range(10):
    by_default, packed = nodes_in_use(seed, packing=False), nodes_in_use(seed, packing=True)
    print(f"seed {seed}: {by_default} nodes in use by default, {packed} packed")
