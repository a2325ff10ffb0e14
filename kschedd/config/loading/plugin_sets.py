"""A profile's plugin sets in a configuration file: the plugins enabled and disabled at each extension point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

MULTI_POINT: Final = "multi_point"

FIELD_OF_POINT: Final[Mapping[str, str]] = {
    MULTI_POINT: "multiPoint",
    "pre_enqueue": "preEnqueue",
    "queue_sort": "queueSort",
    "pre_filter": "preFilter",
    "filter": "filter",
    "post_filter": "postFilter",
    "pre_score": "preScore",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "pre_bind": "preBind",
    "bind": "bind",
    "post_bind": "postBind",
    "placement_generate": "placementGenerate",
    "placement_score": "placementScore",
}
"""Internal name of an extension point -> field name in the configuration file."""

OF_GROUPS: Final = ("placement_generate", "placement_score")
"""The extension points for placements of PodGroups, which files can name since 1.36."""


@attrs.frozen
class PluginEntry:
    """An entry of a plugin set's `enabled` list."""

    name: str
    weight: int = 0
    """0: not set."""
    timeout_s: float | None = None
    """None: not set (`limits`)."""
    path: str = ""
    """Its path in the configuration; empty for a default."""


@attrs.frozen
class PluginSet:
    enabled: tuple[PluginEntry, ...] = ()
    disabled: frozenset[str] = frozenset()


PluginSets = Mapping[str, PluginSet]
"""Extension point or `multi_point` -> its plugin set; points that the configuration does not mention are absent."""

NOTHING_SAID: Final = PluginSet()
