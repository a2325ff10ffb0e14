"""Replacement for a plugin whose Filter or Score is enabled while the point that prepares its CycleState is not.

A configuration can do that. Plugins that declare it (`fast_path.MissingCycleState`) then find no state, and every pod
for which they are called fails with an internal error. Plugins that can recompute their state are not replaced.

Made by `profile` in place of the plugin, at that one point; it owns nothing.

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
    """Return the plugin or its replacement; `called` are the plugins called at the point that prepares its state."""
    why: str | None = getattr(plugin, f"without_{before.name}", None)
    if why is None or plugin.name in called:
        return plugin
    return cast(Plugin, MissingCycleState(plugin.name, why))  # the name is an attribute of the instance, not the class
