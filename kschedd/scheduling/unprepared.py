"""What stands in for a plugin at Filter or Score where the profile leaves out the point at which it prepares for it.

A configuration may do that, and plugins that say so (`fast_path.MissingCycleState`) find nothing prepared then: every
pod that gets as far as asking them fails with an internal error. Plugins that can work it out there need no stand-in.

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
class Unprepared:
    name: str
    why: str

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return error(self.why)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return error(self.why)


def prepared(plugin: Plugin, before: ExtensionPoint[Plugin], called: frozenset[str]) -> Plugin:
    """The plugin as it is to be called; `called` are the names of those called at the point that prepares for it."""
    why: str | None = getattr(plugin, f"without_{before.name}", None)
    if why is None or plugin.name in called:
        return plugin
    return cast(Plugin, Unprepared(plugin.name, why))  # its name is the instance's, not the class's
