"""NodeInfo: one row of the node table, for per-node plugins.

Source: Kubernetes v1.34, kube-scheduler/framework/types.go (NodeInfo).
Units: CPU in millicores, other resources in whole units.
"""

from collections.abc import Mapping, Sequence

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable


@attrs.frozen
class NodeInfo:
    """A node with its pods, for plugins: a view of one row of the node table, always up to date.

    `labels` are the node's labels, such as topology.kubernetes.io/zone. `pods` contains the pods bound to or assumed on
    the node. `node` is the Node object, with its taints.
    """

    table: NodeTable
    row: int

    @property
    def name(self) -> str:
        return self.table.names[self.row]

    @property
    def node(self) -> Node:
        node = self.table.nodes[self.row]
        assert node is not None, f"row {self.row} is expected to have a node"
        return node

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.labels

    @property
    def pods(self) -> Sequence[Pod]:
        return self.table.pods[self.row]

    @property
    def allocatable(self) -> dict[str, int]:
        """The allocatable amount of each resource: `cpu` in millicores, `memory` in bytes."""
        own = {name: amount for name, amount in self.node.allocatable.items() if name != "pods"}
        return {**dict.fromkeys(self.table.resources, 0), **own}

    @property
    def requested(self) -> dict[str, int]:
        """The sum of the requests of the node's pods, including assumed pods, in the units of `allocatable`."""
        return {name: int(self.table.requested[number, self.row]) for name, number in self.table.resources.items()}

    @property
    def used_ports(self) -> frozenset[tuple[str, str, int]]:
        """The used ports as (host IP, protocol, port)."""
        return frozenset(self.table.ports.get(self.row, ()))
