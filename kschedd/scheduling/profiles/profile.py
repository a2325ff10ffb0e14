"""A profile ready to run: its plugin instances, and the plugins of each extension point.

Filter and score plugins run in one of three styles: `CACHED` plugins declare the inputs of their results, so the
results are cached. `VECTOR` plugins are called on rows in each attempt. `PER_NODE` plugins evaluate one node at a time.

Source: Kubernetes v1.34, scheduler/framework/runtime/framework.go (NewFramework).
"""

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any, TypeVar, cast

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable
from kschedd.cache.versions import Versions
from kschedd.config.loading.limits import limits_of
from kschedd.config.model import Config, Profile
from kschedd.config.versions.rules import Rules
from kschedd.framework.fast_path import CacheableEvaluation, ConstantScore, Dependency, idle_for, never_idle
from kschedd.framework.guarding.guarded import GuardedPlugin, guarded
from kschedd.framework.handle import Handle
from kschedd.framework.interface import (
    BIND,
    FILTER,
    PERMIT,
    POST_BIND,
    PRE_BIND,
    PRE_FILTER,
    PRE_SCORE,
    RESERVE,
    SCORE,
    BindPlugin,
    ExtensionPoint,
    FilterPlugin,
    Plugin,
    ScoreExtensions,
    ScorePlugin,
    VectorFilterPlugin,
    VectorScorePlugin,
)
from kschedd.framework.registry import Registry
from kschedd.scheduling.profiles import plugin_metrics as points
from kschedd.scheduling.profiles.metrics import NO_TIMES, NoTimes, PointTimes
from kschedd.scheduling.profiles.plugin_metrics import CallCounter, PluginMetrics
from kschedd.scheduling.profiles.unprepared import prepared

P = TypeVar("P", bound=Plugin)

_MOST_SIGNATURES = 4096


class EvaluationStyle(Enum):
    CACHED = "cached"
    VECTOR = "vector"
    PER_NODE = "per node"


@attrs.frozen(eq=False)
class EnabledFilter:
    """A filter plugin of a profile; `vector` or `per_node` is the plugin, typed by the Protocol it implements."""

    place: int  # index of the filter in the profile's order
    name: str
    style: EvaluationStyle
    depends_on: frozenset[Dependency]
    in_tree: bool  # true if the results need no check
    vector: VectorFilterPlugin
    per_node: FilterPlugin
    calls: CallCounter

    @property
    def plugin(self) -> Plugin:
        return self.per_node


@attrs.frozen(eq=False)
class EnabledScore:
    name: str
    weight: int
    style: EvaluationStyle
    depends_on: frozenset[Dependency]
    in_tree: bool
    vector: VectorScorePlugin
    per_node: ScorePlugin
    normalizes: bool
    extensions: ScoreExtensions  # the plugin's score extensions, if any
    constant: Callable[[Pod, NodeTable], int | None] | None
    calls: CallCounter
    normalizing: CallCounter

    @property
    def plugin(self) -> Plugin:
        return self.per_node


def _style(plugin: Plugin, vector_method: str) -> tuple[EvaluationStyle, frozenset[Dependency]]:
    if not hasattr(plugin, vector_method):
        return EvaluationStyle.PER_NODE, frozenset()
    depends_on = cast(CacheableEvaluation, plugin).depends_on if hasattr(plugin, "depends_on") else None
    return (EvaluationStyle.CACHED, depends_on) if depends_on else (EvaluationStyle.VECTOR, frozenset())


def enabled_filter(place: int, name: str, plugin: Plugin, in_tree: bool, metrics: PluginMetrics) -> EnabledFilter:
    style, depends_on = _style(plugin, "filter_rows")
    return EnabledFilter(
        place,
        name,
        style,
        depends_on,
        in_tree,
        cast(VectorFilterPlugin, plugin),
        cast(FilterPlugin, plugin),
        metrics.calls(name, points.FILTER),
    )


def enabled_score(name: str, weight: int, plugin: Plugin, in_tree: bool, metrics: PluginMetrics) -> EnabledScore:
    style, depends_on = _style(plugin, "score_rows")
    constant = in_tree and hasattr(plugin, "constant_score")
    return EnabledScore(
        name,
        weight,
        style,
        depends_on,
        in_tree,
        cast(VectorScorePlugin, plugin),
        cast(ScorePlugin, plugin),
        hasattr(plugin, "normalize"),
        cast(ScoreExtensions, plugin),
        cast(ConstantScore, plugin).constant_score if constant else None,
        metrics.calls(name, points.SCORE),
        metrics.calls(name, points.NORMALIZE),
    )


@attrs.frozen
class MadeOf:
    """The inputs of a plugin instance; the instance is reused while its inputs are unchanged."""

    plugin_class: type[Plugin]
    args: Any  # of the class's own type
    feature_gates: Mapping[str, bool]
    rules: Rules


@attrs.define(eq=False)
class Framework:
    profile: Profile
    percentage: int  # percentage of nodes to score; 0 means adaptive
    plugins: dict[str, Plugin]
    filters: tuple[EnabledFilter, ...]
    scores: tuple[EnabledScore, ...]
    in_tree: frozenset[str]  # names
    reads_pods: bool  # true if a cached result depends on the pods of a node
    made_of: Mapping[str, MadeOf]
    plugin_metrics: PluginMetrics
    times: PointTimes | NoTimes = attrs.field(default=NO_TIMES, init=False)  # of its extension points
    _at: dict[str, list[Any]] = attrs.field(factory=dict, init=False)  # plugins by the name of the extension point
    # by pod signature without the node or without amounts
    _bound_by: dict[int, BindPlugin | None] = attrs.field(factory=dict, init=False)
    _classes_at: int = attrs.field(default=0, init=False)  # DeviceClass version for which `_bound_by` is valid
    # For each plugin of the binding cycle except Bind: function that returns the extension points where it has no work
    # for a pod.
    _idle_for: list[Callable[[Pod], Collection[str]]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        points: tuple[ExtensionPoint[Any], ...] = (RESERVE, PERMIT, PRE_BIND, POST_BIND)
        plugins = {plugin.name: plugin for point in points for plugin in self.at(point)}
        self._idle_for = [idle_for(plugin) if name in self.in_tree else never_idle for name, plugin in plugins.items()]

    @property
    def name(self) -> str:
        return self.profile.scheduler_name

    @property
    def rules(self) -> Rules:
        """The rules of the Kubernetes version in use."""
        return next(made.rules for made in self.made_of.values())

    def at(self, point: ExtensionPoint[P]) -> list[P]:
        """Return the plugins at an extension point, in order, without in-tree plugins that have no work there."""
        found = self._at.get(point.name)
        if found is None:
            plugins = [self.plugins[ref.name] for ref in self.profile.at(point.name)]
            found = self._at[point.name] = [plugin for plugin in plugins if point.has(plugin)]
        return found

    def bound_by(self, pod: Pod, versions: Versions) -> BindPlugin | None:
        """Return the Bind plugin if only this plugin has work in the binding cycles of equal pods; otherwise None."""
        classes_at = versions.at.get("DeviceClass", 0)
        if classes_at != self._classes_at:  # see `IdleFor`
            self._bound_by.clear()
            self._classes_at = classes_at
        signature = pod.signature
        number = signature.signature_ignoring_node
        if number == signature.id:
            number = signature.signature_ignoring_amounts
        try:
            return self._bound_by[number]
        except KeyError:
            if len(self._bound_by) >= _MOST_SIGNATURES:
                self._bound_by.clear()
            binders = self.at(BIND)
            direct = bool(binders) and binders[0].name in self.in_tree
            direct = direct and all(["binding" in idle(pod) for idle in self._idle_for])
            found = self._bound_by[number] = binders[0] if direct else None
            return found


def build_profile(
    config: Config,
    profile: Profile,
    registry: Registry,
    handle: Handle,
    before: Framework | None = None,
    metrics: PluginMetrics | None = None,
) -> Framework:
    """Build the plugins of the profile. Raises PluginLoadError if an out-of-tree plugin cannot be constructed.

    Instances of the previous profile (`before`) are reused if their inputs (`MadeOf`) are unchanged. `metrics` counts
    the plugins' calls; if it is None, nothing is counted.
    """
    metrics = metrics or PluginMetrics()
    registry = guarded(registry)
    made_of = {
        name: MadeOf(registry.plugin_class(name), profile.args(name), handle.feature_gates, handle.rules)
        for name in profile.names()
    }
    known = {} if before is None else before.made_of
    plugins = {
        name: before.plugins[name]
        if before is not None and known.get(name) == of
        else registry.make(name, of.args, handle)
        for name, of in made_of.items()
    }
    for name, plugin in plugins.items():
        if isinstance(plugin, GuardedPlugin):
            plugin.limit(limits_of(profile, name))
    called = {point.name: frozenset(ref.name for ref in profile.at(point.name)) for point in (PRE_FILTER, PRE_SCORE)}

    def at(point: ExtensionPoint[Any], before: ExtensionPoint[Any]) -> list[tuple[str, int, Plugin, bool]]:
        """Return the name, weight and plugin (or its replacement) of an entry, and whether the plugin is in-tree."""
        return [
            (ref.name, ref.weight, prepared(plugins[ref.name], before, called[before.name]), ref.name in in_tree)
            for ref in profile.at(point.name)
        ]

    in_tree = frozenset(name for name in plugins if name not in registry.added)
    filters = [
        enabled_filter(place, name, plugin, ours, metrics)
        for place, (name, _, plugin, ours) in enumerate(at(FILTER, PRE_FILTER))
    ]
    scores = [enabled_score(*score, metrics) for score in at(SCORE, PRE_SCORE)]
    reads_pods = any("pods" in one.depends_on for one in filters) or any("pods" in one.depends_on for one in scores)
    return Framework(
        profile,
        config.percentage(profile),
        plugins,
        tuple(filters),
        tuple(scores),
        in_tree,
        reads_pods,
        made_of,
        metrics,
    )
