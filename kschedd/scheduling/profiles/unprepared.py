"""A replacement for an enabled Filter or Score plugin if the point that prepares its CycleState is disabled.

A configuration can disable PreFilter or PreScore of a plugin. Plugins that declare `fast_path.MissingCycleState` then
find no state, and fail with an internal error for every pod for which they are called. Plugins that can compute their
state again are not replaced.

`profile` uses the replacement at the one extension point; the replacement owns no state.

Source: Kubernetes v1.34, getPreFilterState and getPreScoreState of each plugin (and getStateData of two).
"""

from typing import cast

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import ExtensionPoint, Plugin
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Status, error


@attrs.frozen
class MissingCycleState:
    name: str
    why: str

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return error(self.why)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return error(self.why)


def prepared(plugin: Plugin, before: ExtensionPoint[Plugin], called: frozenset[str]) -> Plugin:
    """Return the plugin, or a replacement if no state is prepared because it is not among the `called` ones."""
    why: str | None = getattr(plugin, f"without_{before.name}", None)
    if why is None or plugin.name in called:
        return plugin
    return cast(Plugin, MissingCycleState(plugin.name, why))  # the name is an attribute of the instance, not the class
