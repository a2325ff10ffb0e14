"""TopologyPlacementGenerator: restricts a PodGroup with a topology constraint to one domain of the topology key.

Each value of the key gives one placement: the nodes that have this value. If pods of the group are already scheduled,
only their domain is a placement. A group without a constraint has one placement with all nodes.

Rules: fields_of_1_37, at every extension point; without groups_in_domains it is not called.
Source: Kubernetes v1.37, plugins/topologyaware/topology_placement.go. Upstream's order of the placements is random; in
kschedd, placements are in the visiting order of their first nodes.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import attrs
import numpy as np

from kschedd.api.objects import Object
from kschedd.cache.pod_groups import PodGroups, topology_key
from kschedd.cache.table import NodeTable
from kschedd.framework.handle import Handle
from kschedd.framework.placements import Placement
from kschedd.framework.status import Status, error


@attrs.frozen(eq=False)
class TopologyPlacementGenerator:
    name: ClassVar = "TopologyPlacementGenerator"
    rule_of_point: ClassVar = {"placement_generate": "fields_of_1_37"}
    _groups: PodGroups

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls(handle.shared(PodGroups))

    def generate_placements(self, group: Object, table: NodeTable) -> Sequence[Placement] | Status:
        key = topology_key(group)
        if not key:
            return [Placement("", table.order)]
        required = self._domain(group, key, table)
        if isinstance(required, Status):
            return required
        column = table.label(key)
        ids = column.ids[table.order]
        if required is None:
            domains, first = np.unique(ids, return_index=True)
            there = domains[first.argsort()].tolist()  # in visiting order
        else:
            there = [column.numbers[required]]  # its node has the label
        return [Placement(column.values[domain], table.order[ids == domain]) for domain in there if domain >= 0]

    def _domain(self, group: Object, key: str, table: NodeTable) -> str | Status | None:
        """Return the domain of the pods that are already scheduled; None if there are none."""
        found: str | None = None
        for pod in self._groups.placed(group.key):
            row = table.row_of.get(pod.node_name)
            node = None if row is None else table.nodes[row]
            if node is None:
                missing = f'nodeinfo not found for node name "{pod.node_name}"'
                return _undetermined(f"getting node for pod {pod.key}: {missing}")
            domain = node.labels.get(key)
            if domain is None:
                return _undetermined(f"no topology domain found for pod {pod.key}")
            if found and found != domain:
                return _undetermined(f"more than 1 domain found for pod group: {found}, {domain}")
            found = domain
        return found


def _undetermined(why: str) -> Status:
    return error(f"cannot determine domain for already scheduled pods: {why}")
