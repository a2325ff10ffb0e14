"""PodGroupPodsCount: scores a placement of a PodGroup by the number of the group's pods that fit in it.

Rules: fields_of_1_37, at every extension point; without groups_in_domains the plugin is not called.
Source: Kubernetes v1.37, plugins/podgrouppodscount/podgroup_pods_count.go.
"""

from collections.abc import Sequence
from typing import ClassVar, Final, Self

import attrs

from kschedd.api.objects import Object
from kschedd.cache.pod_groups import PodGroups
from kschedd.cache.table import NodeTable
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.framework.placements import PlacedPods
from kschedd.framework.status import Status, error

_NOBODY: Final = "no pods from pod group are assigned to any of the candidate placements"


@attrs.frozen(eq=False)
class PodGroupPodsCount:
    name: ClassVar = "PodGroupPodsCount"
    rule_of_point: ClassVar = {"placement_score": "fields_of_1_37"}
    _groups: PodGroups

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls(handle.shared(PodGroups))

    def score_placements(
        self, group: Object, placements: Sequence[PlacedPods], table: NodeTable
    ) -> Sequence[int] | Status:
        scheduled = len(self._groups.scheduled(group.key))
        counts = [scheduled + len(placed.pods) for placed in placements]
        most = max(counts)
        if not most:
            return error(_NOBODY)
        return [count * MAX_NODE_SCORE // most for count in counts]
