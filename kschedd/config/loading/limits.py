"""`timeoutSeconds`: the time limit of an out-of-tree plugin at an extension point; upstream has no such field.

The limit is set where the plugin is enabled:

    plugins:
      multiPoint: {enabled: [{name: Slow, timeoutSeconds: 10}]}     # at all its points
      bind: {enabled: [{name: Slow, timeoutSeconds: 60}]}           # except this one

Without `timeoutSeconds` the daemon's own limit applies. In-tree plugins have no limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.plugin_sets import PluginEntry
from kschedd.config.model import Profile
from kschedd.config.parsing.reading import ConfigFields

FIELD: Final = "timeoutSeconds"
LONGEST_S: Final = 3600


def read_timeout(fields: ConfigFields, name: str) -> float | None:
    """Return the time limit in an entry of a plugin set; None if the entry has none."""
    place = fields.get(FIELD)
    if place is None:
        return None
    seconds = place.value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST_S:
        place.wrong("not a time limit", f"a number of seconds above 0, up to {LONGEST_S}")
        return None
    if name in IN_TREE:
        place.reading.warn(place.path, seconds, "has no effect: only out-of-tree plugins have limits")
    return float(seconds)


def limit_of(name: str, own: tuple[PluginEntry, ...], everywhere: tuple[PluginEntry, ...]) -> float | None:
    """Return the time limit of a plugin at a point: that of the point's entry, otherwise that of multiPoint."""
    return next((one.timeout_s for one in (*own, *everywhere) if one.name == name and one.timeout_s is not None), None)


def limits_of(profile: Profile, plugin: str) -> Mapping[str, float]:
    """Return the time limits that the profile sets for a plugin, by extension point."""
    return {
        point: ref.timeout_s
        for point, refs in profile.plugins.items()
        for ref in refs
        if ref.name == plugin and ref.timeout_s is not None
    }
