"""What stands in for a plugin at Filter or Score where the profile leaves out the point at which it prepares for it.

A configuration may do that, and these plugins find nothing prepared then: every pod that gets as far as asking them
fails with an internal error. Plugins that can work it out there and then need no stand-in and have none.

Made by `profile` in place of the plugin, at that one point; it owns nothing.
Source: Kubernetes v1.34, getPreFilterState and getPreScoreState of each plugin (and getStateData of two).
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Status, error

# Point -> the point that prepares for it, and what each plugin says of finding nothing.
_NEEDS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "filter": (
        "pre_filter",
        {
            "NodePorts": 'reading "PreFilterNodePorts" from cycleState: not found',
            "NodeResourcesFit": 'error reading "PreFilterNodeResourcesFit" from cycleState: not found',
            "VolumeBinding": "not found",
            "PodTopologySpread": 'reading "PreFilterPodTopologySpread" from cycleState: not found',
            "InterPodAffinity": 'error reading "PreFilterInterPodAffinity" from cycleState: not found',
            "DynamicResources": "not found",
        },
    ),
    "score": (
        "pre_score",
        {
            "TaintToleration": 'failed to read "PreScoreTaintToleration" from cycleState: not found',
            "PodTopologySpread": 'error reading "PreScorePodTopologySpread" from cycleState: not found',
            "InterPodAffinity": 'failed to read "PreScoreInterPodAffinity" from cycleState: not found',
        },
    ),
}


@attrs.frozen
class Unprepared:
    name: str
    why: str

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return error(self.why)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return error(self.why)


def prepared(name: str, plugin: Any, point: str, points: Mapping[str, frozenset[str]]) -> Any:
    """The plugin as it is to be called at a point; `points` has the names of those called at each."""
    before, whys = _NEEDS[point]
    return plugin if name not in whys or name in points[before] else Unprepared(name, whys[name])
