"""A replacement for a Filter or Score plugin whose PreFilter or PreScore is disabled.

A configuration can disable PreFilter or PreScore of a plugin. Without this step, plugins that declare
`fast_path.MissingCycleState` find no CycleState, and return an internal error for every pod. Plugins that can compute
their state again are not replaced.

`profile` uses the replacement at one extension point.

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
    """Return the plugin, or its replacement if the extension point that prepares its state is not in `called`."""
    why: str | None = getattr(plugin, f"without_{before.name}", None)
    if why is None or plugin.name in called:
        return plugin
    return cast(Plugin, MissingCycleState(plugin.name, why))  # set the name on the instance, not on the class
