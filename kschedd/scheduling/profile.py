"""A profile ready to run: its plugins made, and for each extension point the list of those that take part.

Filter and score plugins are of three sorts, which differ in when they are asked (see `kschedd.framework.interface`):
`local` ones say what they read, so verdicts are remembered; `columns` are asked about rows anew each cycle; `plain`
ones see one node at a time.

Source: Kubernetes v1.34, scheduler/framework/runtime/framework.go (NewFramework).
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable
from kschedd.config.model import Config, Profile
from kschedd.framework.guarded import guarded
from kschedd.framework.handle import Handle
from kschedd.framework.interface import takes_part
from kschedd.framework.registry import Registry
from kschedd.scheduling.unprepared import prepared


class Sort(Enum):
    LOCAL = "local"
    COLUMNS = "columns"
    PLAIN = "plain"


@attrs.frozen(eq=False)
class FilterPlugin:
    place: int  # in the order of the profile
    plugin: Any
    name: str
    sort: Sort
    in_tree: bool  # what it says needs no check


@attrs.frozen(eq=False)
class ScorePlugin:
    plugin: Any
    name: str
    weight: int
    sort: Sort
    normalizes: bool
    in_tree: bool
    even: Callable[[Pod, NodeTable], int | None] | None = None


def _sort(plugin: Any, column_method: str) -> Sort:
    if not hasattr(plugin, column_method):
        return Sort.PLAIN
    return Sort.LOCAL if getattr(plugin, "reads", None) else Sort.COLUMNS


@attrs.frozen
class MadeOf:
    """What an instance of a plugin follows from: while it is the same, so is the instance."""

    plugin_class: type[Any]
    args: Any
    feature_gates: Mapping[str, bool]


@attrs.define(eq=False)
class RunningProfile:
    profile: Profile
    percentage: int  # of nodes to score; 0 is adaptive
    plugins: dict[str, Any]
    filters: tuple[FilterPlugin, ...]
    scores: tuple[ScorePlugin, ...]
    in_tree: frozenset[str]  # names
    pre_scores: tuple[Any, ...]
    reads_pods: bool  # whether any local plugin's verdict depends on the pods of a node
    made_of: Mapping[str, MadeOf]
    _at: dict[str, list[Any]] = attrs.field(factory=dict, init=False)

    @property
    def name(self) -> str:
        return self.profile.scheduler_name

    def at(self, point: str) -> list[Any]:
        """The plugins at an extension point, in order; those of ours that need do nothing there are left out."""
        found = self._at.get(point)
        if found is None:
            plugins = [self.plugins[ref.name] for ref in self.profile.at(point)]
            found = self._at[point] = [plugin for plugin in plugins if takes_part(plugin, point)]
        return found


def start_profile(
    config: Config, profile: Profile, registry: Registry, handle: Handle, before: RunningProfile | None = None
) -> RunningProfile:
    """Make the plugins of the profile. Raises PluginLoadError where an out-of-tree one cannot be made.

    Instances that the profile had `before` live on where nothing has changed that they were made of.
    """
    registry = guarded(registry)
    made_of = {
        name: MadeOf(registry.plugin_class(name), profile.args(name), handle.feature_gates) for name in profile.names()
    }
    known = {} if before is None else before.made_of
    plugins = {
        name: before.plugins[name]
        if before is not None and known.get(name) == of
        else registry.make(name, of.args, handle)
        for name, of in made_of.items()
    }
    points = {point: frozenset(ref.name for ref in profile.at(point)) for point in ("pre_filter", "pre_score")}
    at_filter = [(ref.name, prepared(ref.name, plugins[ref.name], "filter", points)) for ref in profile.at("filter")]
    at_score = [(ref, prepared(ref.name, plugins[ref.name], "score", points)) for ref in profile.at("score")]
    filters = tuple(
        FilterPlugin(place, plugin, name, _sort(plugin, "filter_rows"), name not in registry.added)
        for place, (name, plugin) in enumerate(at_filter)
    )
    scores = tuple(
        ScorePlugin(
            plugin,
            ref.name,
            ref.weight,
            _sort(plugin, "score_rows"),
            hasattr(plugin, "normalize"),
            ref.name not in registry.added,
            None if ref.name in registry.added else getattr(plugin, "even_score", None),
        )
        for ref, plugin in at_score
    )
    local = [p.plugin for p in filters if p.sort is Sort.LOCAL] + [p.plugin for p in scores if p.sort is Sort.LOCAL]
    return RunningProfile(
        profile,
        config.percentage(profile),
        plugins,
        filters,
        scores,
        frozenset(name for name in plugins if name not in registry.added),
        tuple(plugins[ref.name] for ref in profile.at("pre_score") if takes_part(plugins[ref.name], "pre_score")),
        any("pods" in plugin.reads for plugin in local),
        made_of,
    )
