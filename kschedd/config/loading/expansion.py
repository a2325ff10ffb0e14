"""Expansion of a profile's `plugins` into the ordered list of plugins at each extension point.

Two steps. `merged` merges the user's plugin sets into the defaults: disabled plugins are removed, a default that is
enabled again is replaced in place, and other enabled plugins are appended. `expand` then adds each MultiPoint plugin to
the extension points that the plugin implements. The order at a point is:

1. plugins enabled at the point that are also in MultiPoint, in the order at the point;
2. the other MultiPoint plugins in their order, except those disabled at the point (`*` disables all);
3. the other plugins enabled at the point.

Source: Kubernetes v1.34, apis/config/v1/default_plugins.go (mergePluginSet) and
framework/runtime/framework.go (updatePluginList, expandMultiPointPlugins, getScoreWeights).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kschedd.api.text.similar import did_you_mean
from kschedd.config.loading.limits import limit_of
from kschedd.config.loading.plugin_sets import (
    FIELD_OF_POINT,
    MULTI_POINT,
    NOTHING_SAID,
    PluginEntry,
    PluginSet,
    PluginSets,
)
from kschedd.config.model import EXTENSION_POINTS, SCORING, PluginRef

MAX_TOTAL_SCORE = 2**63 - 1
MAX_NODE_SCORE = 100

Report = Callable[[str, Any, str, str], None]
"""Reports a fault: takes path, value, reason and allowed values."""


def merged(custom: PluginSets, defaults: PluginSets, *, replaces: bool = True) -> PluginSets:
    """Return the user's plugin sets merged into the defaults of the file's release."""
    return {
        point: _merged_set(defaults.get(point, NOTHING_SAID), custom.get(point, NOTHING_SAID), replaces)
        for point in FIELD_OF_POINT
    }


def _merged_set(default: PluginSet, custom: PluginSet, replaces: bool) -> PluginSet:
    # If a plugin is enabled twice, the later entry replaces the default, and the earlier one is appended: the expansion
    # then reports a duplicate.
    replacing = {one.name: at for at, one in enumerate(custom.enabled)} if replaces else {}
    replaced: set[int] = set()
    enabled: list[PluginEntry] = []
    if "*" not in custom.disabled:
        for one in default.enabled:
            if one.name in custom.disabled:
                continue
            if one.name in replacing:
                replaced.add(replacing[one.name])
                one = custom.enabled[replacing[one.name]]
            enabled.append(one)
    enabled += [one for at, one in enumerate(custom.enabled) if at not in replaced]
    return PluginSet(tuple(enabled), custom.disabled)


def expand(
    sets: PluginSets,
    implements: Callable[[str], frozenset[str] | None],
    report: Report,
    profile_path: str = "$",
) -> dict[str, tuple[PluginRef, ...]]:
    """Return the plugins of each extension point, in calling order.

    `implements` returns the extension points of a plugin; None for an unknown plugin. Faults are reported to `report`;
    the result is then invalid.
    """
    implements = cache(implements)  # the function is called for every plugin at every point
    multi = sets.get(MULTI_POINT, NOTHING_SAID)
    weights = {
        point: _weights(sets.get(point, NOTHING_SAID).enabled + multi.enabled, point, implements) for point in SCORING
    }
    points: dict[str, tuple[PluginRef, ...]] = {}
    twice: dict[str, PluginEntry] = {}
    for point in EXTENSION_POINTS:
        given = sets.get(point, NOTHING_SAID)
        own = _own_plugins(given, point, implements, report)
        spread: list[str] = []
        overridden: set[str] = set()
        if "*" not in given.disabled:
            for one in multi.enabled:
                if point not in (implements(one.name) or ()) or one.name in given.disabled:
                    continue
                if one.name in own:
                    overridden.add(one.name)
                elif one.name in spread:
                    twice[one.path] = one
                else:
                    spread.append(one.name)
        names = [name for name in own if name in overridden] + spread
        names += [name for name in own if name not in overridden]
        points[point] = tuple(
            PluginRef(
                name,
                weights[point].get(name, 1) if point in weights else 0,
                limit_of(name, given.enabled, multi.enabled),
            )
            for name in names
        )
    for one in twice.values():
        report(f"{one.path}.name", one.name, "enabled twice at multiPoint", "")
    total = sum(ref.weight for ref in points["score"]) * MAX_NODE_SCORE
    if total > MAX_TOTAL_SCORE:
        report(f"{profile_path}.plugins.score", total, "the weights add up to more than a score can hold", "")
    _check_needed(points, report, profile_path)
    return points


def _own_plugins(
    given: PluginSet, point: str, implements: Callable[[str], frozenset[str] | None], report: Report
) -> list[str]:
    """Return the plugins that the extension point itself enables; report duplicates and omit them."""
    own: list[str] = []
    for one in given.enabled:
        takes_part = implements(one.name)
        if takes_part is None:
            continue
        if point not in takes_part:
            can = ", ".join(FIELD_OF_POINT[at] for at in EXTENSION_POINTS if at in takes_part)
            why = f"does not take part in {FIELD_OF_POINT[point]}"
            report(f"{one.path}.name", one.name, why, can)
        elif one.name in own:
            report(f"{one.path}.name", one.name, f"enabled twice at {FIELD_OF_POINT[point]}", "")
        else:
            own.append(one.name)
    return own


def _weights(
    listed: tuple[PluginEntry, ...], point: str, implements: Callable[[str], frozenset[str] | None]
) -> dict[str, int]:
    """Return the weights at a scoring point: the point's own entry takes precedence over MultiPoint; 0 becomes 1."""
    weights: dict[str, int] = {}
    for one in listed:
        if point in (implements(one.name) or ()):
            weights.setdefault(one.name, one.weight or 1)
    return weights


def _check_needed(points: Mapping[str, tuple[PluginRef, ...]], report: Report, profile_path: str) -> None:
    """Check that a profile has exactly one QueueSort plugin, and at least one Bind plugin."""
    sorting = [ref.name for ref in points["queue_sort"]]
    if len(sorting) != 1:
        report(
            f"{profile_path}.plugins.queueSort",
            sorting,
            f"a profile needs exactly one plugin to sort the queue, and this one has {len(sorting)}",
            "PrioritySort, or another one with PrioritySort disabled",
        )
    if not points["bind"]:
        report(
            f"{profile_path}.plugins.bind",
            None,
            "a profile needs at least one plugin to bind, and this one has none",
            "DefaultBinder, or another one",
        )


def unknown_plugin(name: str, known: Mapping[str, Any]) -> tuple[str, str]:
    """Return the error about a rejected name, with the allowed names."""
    return f"no such plugin{did_you_mean(name, known, 1)}", ", ".join(sorted(known))


_COMPANIONS: Mapping[str, str] = {
    "pre_enqueue": "post_filter",
    "pre_filter": "filter",
    "pre_score": "score",
    "reserve": "filter",
    "pre_bind": "reserve",
}
"""A point -> the one that it prepares or completes."""


def with_new_points(
    points: Mapping[str, tuple[PluginRef, ...]],
    defaults: PluginSets,
    implements: Callable[[str], frozenset[str] | None],
) -> dict[str, tuple[PluginRef, ...]]:
    """Return the points with every plugin added to points that the plugin has gained since the release of `defaults`.

    A file of that release could not have disabled the plugin at these points. For example, NodeVolumeLimits got its
    PreFilter in v1.30, and its Filter depends on it.
    """
    had: dict[str, set[str]] = {}
    for point, given in defaults.items():
        for one in given.enabled:
            had.setdefault(one.name, set()).add(point)
    completed = dict(points)
    for point, partner in _COMPANIONS.items():
        there = {ref.name for ref in completed[point]}
        new = [
            PluginRef(ref.name)
            for ref in completed[partner]
            if ref.name in had
            and point not in had[ref.name]
            and ref.name not in there
            and point in (implements(ref.name) or ())
        ]
        completed[point] = (*completed[point], *new)
    return completed
