"""Changes to a configuration at runtime: each function returns a new `Config` and does not modify its argument.

A change takes effect when the caller begins to use the new value. Using the old value again reverts the change.
All functions raise `ConfigErrors` for a change whose result would fail the validation at loading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import attrs

from kschedd.api.text.similar import did_you_mean
from kschedd.config.args import ArgsContext, default_args, read_plugin_args
from kschedd.config.changing.files import written_as_v1
from kschedd.config.changing.values import changed_origins
from kschedd.config.in_tree import IN_TREE, Catalogue, default_plugins
from kschedd.config.loading.expansion import unknown_plugin
from kschedd.config.loading.load import API_VERSION, KIND, config_from_raw, default_config, load_config
from kschedd.config.loading.plugin_sets import FIELD_OF_POINT
from kschedd.config.model import EXTENSION_POINTS, SCORING, Config, PluginRef, Profile
from kschedd.config.parsing.faults import ConfigError, ConfigErrors
from kschedd.config.parsing.reading import INT32, INT64, ConfigReader, ConfigValue
from kschedd.config.versions.feature_gates import FLAG
from kschedd.config.versions.kube_versions import KubernetesVersion

SOURCE = "change"


def with_weight(config: Config, scheduler_name: str, plugin: str, weight: int) -> Config:
    """Return the configuration with a changed score weight of one plugin."""
    profile, path = _found(config, scheduler_name)
    path = f"{path}.plugins.score"
    scoring = profile.at("score")
    if plugin not in (ref.name for ref in scoring):
        names = [ref.name for ref in scoring]
        _refuse(path, plugin, f"does not score in this profile{did_you_mean(plugin, names)}", ", ".join(names))
    if not 1 <= weight <= INT32[1]:
        _refuse(path, weight, "not a weight", f"1 to {INT32[1]}")
    refs = tuple(attrs.evolve(ref, weight=weight) if ref.name == plugin else ref for ref in scoring)
    return _with_points(config, profile, {"score": refs})


def with_weights(config: Config, weights: Mapping[str, Any]) -> Config:
    """Return the configuration with changed score weights, in each profile in which the plugin scores."""
    for plugin, weight in weights.items():
        scoring = [each.scheduler_name for each in config.profiles if plugin in (ref.name for ref in each.at("score"))]
        if type(weight) is not int:
            _refuse("weights", weight, "not a weight", f"1 to {INT32[1]}")
        for name in scoring or [config.profiles[0].scheduler_name]:  # the first profile raises the error
            config = with_weight(config, name, plugin, weight)
    return config


def with_plugin_disabled(
    config: Config, scheduler_name: str, plugin: str, points: Sequence[str] | None = None
) -> Config:
    """Return the configuration with a plugin disabled, at some extension points or at all of them."""
    profile, path = _found(config, scheduler_name)
    points = EXTENSION_POINTS if points is None else _checked_points(points, path)
    changed = {
        point: tuple(ref for ref in profile.at(point) if ref.name != plugin)
        for point in points
        if any(ref.name == plugin for ref in profile.at(point))
    }
    if not changed:
        names = profile.names()
        _refuse(f"{path}.plugins", plugin, f"is not enabled there{did_you_mean(plugin, names)}", ", ".join(names))
    return _with_points(config, profile, changed)


def with_plugin_enabled(
    config: Config,
    scheduler_name: str,
    plugin: str,
    points: Sequence[str] | None = None,
    *,
    weight: int | None = None,
    args: Mapping[str, Any] | None = None,
    catalogue: Catalogue = IN_TREE,
) -> Config:
    """Return the configuration with a plugin enabled, at some extension points or at all points that it implements.

    A default plugin gets its position in the default order; any other plugin is appended. Without `weight`, the plugin
    gets its default weight; without `args`, it keeps its arguments in this profile.
    """
    profile, path = _found(config, scheduler_name)
    info = catalogue.get(plugin)
    if info is None:
        _refuse(f"{path}.plugins", plugin, *unknown_plugin(plugin, catalogue))
    takes_part = info.points_under(config.rules)
    points = [at for at in EXTENSION_POINTS if at in takes_part] if points is None else points
    defaults = dict(default_plugins(config.rules, config.feature_gates))
    if weight is not None and not 1 <= weight <= INT32[1]:
        _refuse(f"{path}.plugins.score", weight, "not a weight", f"1 to {INT32[1]}")
    changed: dict[str, tuple[PluginRef, ...]] = {}
    for point in _checked_points(points, path):
        if point not in takes_part:
            can = ", ".join(FIELD_OF_POINT[at] for at in EXTENSION_POINTS if at in takes_part)
            _refuse(
                f"{path}.plugins.{FIELD_OF_POINT[point]}", plugin, f"does not implement {FIELD_OF_POINT[point]}", can
            )
        refs = profile.at(point)
        if plugin in (ref.name for ref in refs):
            continue
        own = (weight or defaults.get(plugin) or 1) if point in SCORING else 0
        changed[point] = _inserted(refs, PluginRef(plugin, own), list(defaults))
    if not changed:
        _refuse(f"{path}.plugins", plugin, "is already enabled there")
    changed_config = _with_points(config, profile, changed)
    if args is not None:
        return with_plugin_args(changed_config, scheduler_name, plugin, args, catalogue=catalogue)
    if plugin in profile.plugin_args:
        return changed_config
    given = {**profile.plugin_args, plugin: _default_args(config, plugin, catalogue)}
    enabled, _ = _found(changed_config, scheduler_name)
    return _replaced(changed_config, enabled, attrs.evolve(enabled, plugin_args=given))


def with_plugin_args(
    config: Config, scheduler_name: str, plugin: str, args: Mapping[str, Any], *, catalogue: Catalogue = IN_TREE
) -> Config:
    """Return the configuration with a plugin's arguments replaced; `args` has the format of a file."""
    profile, path = _found(config, scheduler_name)
    if plugin not in profile.names():
        names = profile.names()
        why = f"is not enabled in this profile{did_you_mean(plugin, names)}"
        _refuse(f"{path}.pluginConfig", plugin, why, ", ".join(names))
    reading = ConfigReader(SOURCE)
    place = ConfigValue(args, f"{path}.pluginConfig.{plugin}", reading)
    read = read_plugin_args(plugin, catalogue.get(plugin), place, ArgsContext(config.feature_gates))
    if reading.faults:
        raise ConfigErrors(tuple(reading.faults))
    changed = attrs.evolve(profile, plugin_args={**profile.plugin_args, plugin: read})
    return _checked_queue(_replaced(config, profile, changed))


def with_percentage(config: Config, percentage: int | None, scheduler_name: str | None = None) -> Config:
    """Return the configuration with a changed percentageOfNodesToScore, of one profile or as the top-level default.

    0 means adaptive; more than 100 means 100; None for a profile means the top-level default.
    """
    if percentage is not None and percentage < 0:
        _refuse("$.percentageOfNodesToScore", percentage, "out of range", "0 (adaptive) to 100")
    share = None if percentage is None else min(percentage, 100)
    if scheduler_name is None:
        return attrs.evolve(config, percentage_of_nodes_to_score=share or 0)
    profile, _ = _found(config, scheduler_name)
    return _replaced(config, profile, attrs.evolve(profile, percentage_of_nodes_to_score=share))


def with_backoff(config: Config, initial_s: int, max_s: int) -> Config:
    """Return the configuration with changed podInitialBackoffSeconds and podMaxBackoffSeconds."""
    if not 1 <= initial_s <= INT64[1]:
        _refuse("$.podInitialBackoffSeconds", initial_s, "out of range", "1 or more")
    if max_s < initial_s:
        _refuse("$.podMaxBackoffSeconds", max_s, "less than the initial backoff", f"{initial_s} or more")
    return attrs.evolve(config, pod_initial_backoff_s=initial_s, pod_max_backoff_s=max_s)


def with_parallelism(config: Config, parallelism: int) -> Config:
    if not 1 <= parallelism <= INT32[1]:
        _refuse("$.parallelism", parallelism, "out of range", "1 or more")
    return attrs.evolve(config, parallelism=parallelism)


def with_profile_added(
    config: Config, scheduler_name: str, profile: Mapping[str, Any] | None = None, *, catalogue: Catalogue = IN_TREE
) -> Config:
    """Return the configuration with an additional profile, in the file's format (None: the default profile)."""
    if any(one.scheduler_name == scheduler_name for one in config.profiles):
        _refuse("$.profiles", scheduler_name, "a profile with this name already exists")
    raw = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "profiles": [{**(profile or {}), "schedulerName": scheduler_name}],
    }
    new = config_from_raw(
        raw, catalogue=catalogue, version=config.version, feature_gates=config.feature_gates, source=SOURCE
    )
    return _checked_queue(attrs.evolve(config, profiles=(*config.profiles, *new.profiles)))


def with_profile_copied(config: Config, scheduler_name: str, like: str) -> Config:
    """Return the configuration with an additional scheduler name, whose profile is a copy of the profile `like`."""
    copied = attrs.evolve(_found(config, like)[0], scheduler_name=scheduler_name)
    old = config.profile(scheduler_name)
    return attrs.evolve(config, profiles=(*config.profiles, copied)) if old is None else _replaced(config, old, copied)


def with_profile_removed(config: Config, scheduler_name: str) -> Config:
    profile, _ = _found(config, scheduler_name)
    if len(config.profiles) == 1:
        _refuse("$.profiles", scheduler_name, "is the only profile")
    return attrs.evolve(config, profiles=tuple(one for one in config.profiles if one is not profile))


def with_unschedulable_flush(config: Config, seconds: int) -> Config:
    """Return the configuration with a changed podMaxInUnschedulablePodsDuration."""
    if not 1 <= seconds <= INT32[1]:
        _refuse("$.podMaxInUnschedulablePodsDuration", seconds, "out of range", "1 or more")
    return attrs.evolve(config, unschedulable_flush_s=seconds)


def _default_args(config: Config, plugin: str, catalogue: Catalogue) -> Any:
    return default_args(plugin, catalogue.get(plugin), ArgsContext(config.feature_gates))


def _found(config: Config, scheduler_name: str) -> tuple[Profile, str]:
    for number, profile in enumerate(config.profiles):
        if profile.scheduler_name == scheduler_name:
            return profile, f"$.profiles[{number}]"
    names = [profile.scheduler_name for profile in config.profiles]
    _refuse("$.profiles", scheduler_name, f"no such profile{did_you_mean(scheduler_name, names)}", ", ".join(names))


def _checked_points(points: Sequence[str], path: str) -> Sequence[str]:
    for point in points:
        if point not in EXTENSION_POINTS:
            _refuse(f"{path}.plugins", point, "no such extension point", ", ".join(EXTENSION_POINTS))
    return points


def _inserted(refs: tuple[PluginRef, ...], new: PluginRef, order: list[str]) -> tuple[PluginRef, ...]:
    """Return `refs` with `new` inserted before the first plugin that follows `new` in `order`, else appended."""
    if new.name in order:
        after = set(order[order.index(new.name) + 1 :])
        for at, ref in enumerate(refs):
            if ref.name in after:
                return (*refs[:at], new, *refs[at:])
    return (*refs, new)


def _with_points(config: Config, profile: Profile, changed: Mapping[str, tuple[PluginRef, ...]]) -> Config:
    _, path = _found(config, profile.scheduler_name)
    if len(changed.get("queue_sort", profile.at("queue_sort"))) != 1:
        names = [ref.name for ref in changed["queue_sort"]]
        _refuse(f"{path}.plugins.queueSort", names, "exactly one plugin must sort the queue")
    if not changed.get("bind", profile.at("bind")):
        _refuse(f"{path}.plugins.bind", None, "at least one plugin must bind")
    new = attrs.evolve(profile, plugins={**profile.plugins, **changed})
    return _checked_queue(_replaced(config, profile, new))


def _checked_queue(config: Config) -> Config:
    first = config.profiles[0]
    for number, profile in enumerate(config.profiles):
        sort = profile.queue_sort
        if sort != first.queue_sort or profile.args(sort) != first.args(sort):
            path = f"$.profiles[{number}].plugins.queueSort"
            _refuse(path, sort, "all profiles must sort the queue alike", first.queue_sort)
    return config


def _replaced(config: Config, old: Profile, new: Profile) -> Config:
    profiles = tuple(new if profile is old else profile for profile in config.profiles)
    return attrs.evolve(config, profiles=profiles)


def _refuse(path: str, value: Any, why: str, allowed: str = "") -> NoReturn:
    raise ConfigErrors((ConfigError("", 0, path, value, why, allowed),))


def with_version(
    config: Config,
    version: KubernetesVersion,
    catalogue: Catalogue = IN_TREE,
    feature_gates: Mapping[str, bool] | None = None,
) -> Config:
    """Return the configuration that another version of Kubernetes would read from the same file. Raises ConfigErrors.

    Fields missing in the file get the defaults of that version. Feature gates that were changed from their default stay
    changed, except gates that the version lacks or has locked. Gates in `feature_gates` get the states given there.
    """
    before = config.version.gates
    gates = {
        name: state
        for name, state in config.feature_gates.items()
        if state != before[name].default and name in version.gates and not version.gates[name].locked
    }
    gates.update(feature_gates or {})
    text = written_as_v1(_without_later_points(config, version, catalogue), catalogue)
    new = load_config(text, version.release, catalogue=catalogue, version=version, feature_gates=gates)
    return attrs.evolve(new, unschedulable_flush_s=config.unschedulable_flush_s)


def _without_later_points(config: Config, version: KubernetesVersion, catalogue: Catalogue) -> Config:
    """Return the configuration without plugins at points that they do not have in the other version.

    A changed weight lists all plugins of the point, also those that this version enables by default and the other
    version lacks there. Extension points with the default plugins are unchanged, because the other version has its own
    defaults.
    """
    rules = config.rules
    defaults = default_config(catalogue=catalogue, version=config.version, feature_gates=config.feature_gates)
    usual = defaults.profiles[0].plugins
    changed = config
    for profile in config.profiles:
        points = {}
        for point, refs in profile.plugins.items():
            known = [(ref, catalogue.get(ref.name)) for ref in refs]
            kept = tuple(
                ref
                for ref, info in known
                if info is None or point not in info.points_under(rules) or point in info.points_under(version.rules)
            )
            if kept != refs and refs != usual[point]:
                points[point] = kept
        if points:
            changed = _with_points(changed, profile, points)
    return changed


def with_flags(config: Config, gates: Mapping[str, bool], unschedulable_flush_s: int | None) -> Config:
    """Return the configuration with the values of kube-scheduler's flags; the flags are recorded as their origin.

    `gates` contains the feature gates passed when the configuration was loaded.
    """
    origins = {**config.origins, **{f"featureGates[{gate}]": FLAG for gate in gates}}
    if unschedulable_flush_s is not None:
        config = attrs.evolve(config, unschedulable_flush_s=unschedulable_flush_s)
        origins["podMaxInUnschedulablePodsDuration"] = "--pod-max-in-unschedulable-pods-duration"
    return attrs.evolve(config, origins=origins)


def with_schedulers(config: Config, schedulers: Mapping[str, str]) -> Config:
    """Return the configuration with a copy of a profile for each of these scheduler names. Raises ConfigErrors."""
    if not schedulers:
        return config
    changed = config
    for name, profile in schedulers.items():
        changed = with_profile_copied(changed, name, profile)
    return attrs.evolve(changed, origins=changed_origins(config, changed, "--scheduler"))
