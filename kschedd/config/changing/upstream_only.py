"""A configuration without kschedd's own features, in the form that kube-scheduler v1.34 accepts.

Plugins of older releases are left out, or replaced by a current plugin with the same function: NodeResourcesFit with a
scoring strategy replaces the three plugins that scored resources, and PodTopologySpread's System constraints replace
SelectorSpread. Each of these plugins causes a remark.

Source: Kubernetes v1.34, kube-scheduler/config/v1; v1.22, apis/config/v1beta2 (plugins that later releases removed).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.config.in_tree import OLDER
from kschedd.config.model import EXTENSION_POINTS, Config, PluginRef, Profile
from kschedd.config.parsing.faults import ConfigError

_FIT: Final = "NodeResourcesFit"
_SPREAD: Final = "PodTopologySpread"
_STRATEGIES: Final[Mapping[str, str]] = {
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    "RequestedToCapacityRatioPriority": "RequestedToCapacityRatio",
}


def upstream_only(config: Config) -> Config:
    """Return the configuration, with a warning for each plugin that was left out or replaced."""
    warnings = [warning for warning in config.warnings if warning.value not in OLDER]
    profiles = []
    for profile in config.profiles:
        made, remarks = _profile(profile)
        profiles.append(made)
        path = f"profiles[{profile.scheduler_name}]"
        warnings += [ConfigError("", 0, path, plugin, why) for plugin, why in remarks]
    return attrs.evolve(config, profiles=tuple(profiles), warnings=tuple(warnings))


def _profile(profile: Profile) -> tuple[Profile, list[tuple[str, str]]]:
    args = dict(profile.plugin_args)
    points = {point: list(profile.at(point)) for point in EXTENSION_POINTS}
    remarks = []
    scorers = [ref for ref in points["score"] if ref.name in _STRATEGIES]
    if len(scorers) == 1 and _FIT not in (ref.name for ref in points["score"]):
        old = scorers[0]
        points["score"] = [PluginRef(_FIT, ref.weight) if ref is old else ref for ref in points["score"]]
        if _FIT not in (ref.name for ref in points["pre_score"]):
            points["pre_score"].append(PluginRef(_FIT))
        args[_FIT] = _with_strategy(args[_FIT], _STRATEGIES[old.name], args[old.name])
        remarks.append((old.name, f"is replaced by {_FIT} with the strategy {_STRATEGIES[old.name]}"))
    spread = args.get(_SPREAD)
    scoring = [ref.name for ref in points["score"]]
    if "SelectorSpread" in scoring and _SPREAD in scoring and spread is not None and not spread.constraints:
        args[_SPREAD] = attrs.evolve(spread, defaulting_type="System")
        remarks.append(("SelectorSpread", f"is replaced by the System constraints of {_SPREAD}"))
    replaced = {name for name, _ in remarks}
    for name in profile.names():
        if name in OLDER and name not in replaced:
            remarks.append(
                (name, f"is left out: kube-scheduler v1.34 does not have it; instead: {OLDER[name].instead}")
            )
    kept = {point: tuple(ref for ref in refs if ref.name not in OLDER) for point, refs in points.items()}
    known = {name: value for name, value in args.items() if name not in OLDER}
    return attrs.evolve(profile, plugins=kept, plugin_args=known), remarks


def _with_strategy(fit: Any, kind: str, old: Any) -> Any:
    shape = old.shape if kind == "RequestedToCapacityRatio" else ()
    highest = max((point.score for point in shape), default=0)
    if highest > 10:  # the shape comes from a Policy, whose scores go up to 100
        shape = tuple(attrs.evolve(point, score=point.score // 10) for point in shape)
    strategy = attrs.evolve(fit.scoring_strategy, type=kind, resources=old.resources, shape=shape)
    return attrs.evolve(fit, scoring_strategy=strategy)
