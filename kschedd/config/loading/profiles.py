"""Reading of the profiles of a KubeSchedulerConfiguration: plugin sets, arguments, and checks over all profiles.

Source: Kubernetes v1.34, apis/config/v1/default_plugins.go, apis/config/validation/validation.go. Before v1beta2,
apis/config/v1beta1/default_plugins.go (mergePluginSet): a default that is enabled again is enabled twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kschedd.config.args import read_plugin_args
from kschedd.config.in_tree import OLDER
from kschedd.config.loading import limits
from kschedd.config.loading.context import Loading
from kschedd.config.loading.expansion import expand, merged, unknown_plugin, with_new_points
from kschedd.config.loading.plugin_sets import FIELD_OF_POINT, MULTI_POINT, PluginEntry, PluginSet
from kschedd.config.loading.releases import RENAMED
from kschedd.config.model import DEFAULT_SCHEDULER_NAME, SCORING, PluginRef, Profile
from kschedd.config.parsing.reading import INT32, ConfigFields, ConfigValue

NO_NAME = "a profile has no schedulerName, which only a single profile may leave out"


def percentage(fields: ConfigFields) -> int | None:
    """Return percentageOfNodesToScore. More than 100 counts as 100, with a warning."""
    name = "percentageOfNodesToScore"
    found = fields.maybe_integer(name)
    if found is not None and found < 0:
        fields.place.reading.report(fields.path(name), found, "out of range", "0 to 100")
    elif found is not None and found > 100:
        fields.place.reading.warn(fields.path(name), found, "counts as 100", "0 to 100")
        return 100
    return found


def read_profiles(fields: ConfigFields, loading: Loading) -> list[Profile]:
    places = fields.items("profiles") or [fields.place.at("profiles", []).at(0, {})]
    profiles: list[Profile] = []
    names: dict[str, str] = {}
    for place in places:
        profile = _profile(place, len(places) == 1, loading)
        if profile is None:
            continue
        name = profile.scheduler_name
        if name and name in names:
            place.at("schedulerName", name).wrong(f"the same name as {names[name]}")
        names[name] = place.path
        profiles.append(profile)
    return profiles


def checked_queue_sort(profiles: Sequence[Profile], fields: ConfigFields) -> None:
    """Check that all profiles have the same QueueSort plugin and arguments, because there is one scheduling queue."""
    for number, profile in enumerate(profiles[1:], 1):
        first = profiles[0]
        sort, first_sort = profile.plugins["queue_sort"], first.plugins["queue_sort"]
        path = f"{fields.path('profiles')}[{number}]"
        if len(sort) != 1 or len(first_sort) != 1:
            continue
        report = fields.place.reading.report
        if sort != first_sort:
            why = "all profiles must sort the queue by the same plugin"
            report(f"{path}.plugins.queueSort", sort[0].name, why, first_sort[0].name)
        elif profile.args(sort[0].name) != first.args(sort[0].name):
            why = "all profiles must give the plugin that sorts the queue the same arguments"
            report(f"{path}.pluginConfig", sort[0].name, why)


def _profile(place: ConfigValue, only: bool, loading: Loading) -> Profile | None:
    own = ("percentageOfNodesToScore",) if loading.release.version == "v1" else ()
    fields = place.fields("schedulerName", *own, "plugins", "pluginConfig")
    if fields is None:
        return None
    if fields.get("schedulerName") is None:
        name = DEFAULT_SCHEDULER_NAME if only else ""
        if not only:
            fields.missing("schedulerName", NO_NAME)
    else:
        name = fields.needed_text("schedulerName") or ""
    if own:
        loading.note(f"profiles[{name}].percentageOfNodesToScore", fields.get("percentageOfNodesToScore"))
    plugins = read_plugins(place, fields.mapping("plugins"), name, loading)
    return made_profile(
        name, plugins, read_plugin_config(fields, name, loading), loading, percentage(fields) if own else None
    )


def made_profile(
    name: str,
    plugins: Mapping[str, tuple[PluginRef, ...]],
    args: dict[str, Any],
    loading: Loading,
    share: int | None = None,
) -> Profile:
    """Return a profile in which every enabled plugin has arguments."""
    for taking_part in sorted({ref.name for refs in plugins.values() for ref in refs}):
        args.setdefault(taking_part, loading.default_args(taking_part))
    return Profile(name, plugins, args, share)


def read_plugins(
    profile: ConfigValue, plugins: ConfigValue | None, name: str, loading: Loading
) -> dict[str, tuple[PluginRef, ...]]:
    """Return the plugins at each point: the file's `plugins` merged into the defaults of the file's release."""
    release, reading = loading.release, loading.reading
    custom: dict[str, PluginSet] = {}
    more = ("unreserve",) if release.version.startswith("v1alpha") else ()
    known = release.points(loading.rules)
    fields = plugins.fields(*(FIELD_OF_POINT[point] for point in known), *more) if plugins else None
    faults_before = len(reading.faults)
    for point in known if fields else ():
        given = fields.mapping(FIELD_OF_POINT[point]) if fields else None
        if given is not None:
            custom[point] = _plugin_set(given, point, loading)
    if fields and more and (given := fields.mapping("unreserve")) is not None:
        reading.warn(given.path, None, "has no effect: a plugin at reserve unreserves, too, since v1.19")
    defaults = release.default_sets(loading.rules, loading.gates)
    sets = merged(custom, defaults, replaces=release.replaces)
    # After faults, the plugin sets are incomplete, and expanding them would only report consequences of these faults.
    broken = len(reading.faults) > faults_before
    points = expand(
        sets, loading.implements, (lambda path, value, why, allowed: None) if broken else reading.report, profile.path
    )
    if release.by_point:
        points = with_new_points(points, defaults, loading.implements)
    for point, refs in points.items():
        for ref in refs:
            path = _path_of(custom, point, ref.name)
            if path:
                loading.note_path(f"profiles[{name}].plugins.{FIELD_OF_POINT[point]}[{ref.name}]", path)
    return points


def _path_of(custom: Mapping[str, PluginSet], point: str, name: str) -> str:
    """Return the position in the file at which a plugin is enabled for a point; empty for a default."""
    for given in (custom.get(point), custom.get(MULTI_POINT)):
        for one in given.enabled if given else ():
            if one.name == name:
                return one.path
    return ""


def _plugin_set(place: ConfigValue, point: str, loading: Loading) -> PluginSet:
    fields = place.fields("enabled", "disabled")
    if fields is None:
        return PluginSet()
    catalogue = loading.catalogue
    enabled = []
    for item in fields.items("enabled"):
        inner = item.fields("name", "weight", limits.FIELD)
        name = inner.needed_text("name") if inner else None
        if inner is None or name is None:
            continue
        name = current_name(name, loading)
        if name not in catalogue:
            item.at("name", name).wrong(*unknown_plugin(name, catalogue))
        warn_if_removed(item.at("name", name), name, loading)
        weight = inner.integer("weight", 0, (0, INT32[1]))
        if weight and point not in (MULTI_POINT, *SCORING):
            place.reading.warn(inner.path("weight"), weight, "a weight counts only at score and multiPoint")
        enabled.append(PluginEntry(name, weight, limits.read_timeout(inner, name), item.path))
    disabled = []
    for item in fields.items("disabled"):
        # Upstream also uses the type Plugin here, but only the name matters.
        inner = item.fields("name", "weight")
        name = inner.needed_text("name") if inner else None
        if inner is None or name is None:
            continue
        name = current_name(name, loading)
        if name != "*" and name not in catalogue:
            why, allowed = unknown_plugin(name, catalogue)
            place.reading.warn(inner.path("name"), name, why, f"*, {allowed}")
        disabled.append(name)
    return PluginSet(tuple(enabled), frozenset(disabled))


def current_name(name: str, loading: Loading) -> str:
    """Return the current name of a plugin, which a file of an older release may spell differently."""
    return RENAMED.get(name, name) if loading.release.version.startswith("v1alpha") else name


def warn_if_removed(place: ConfigValue, name: str, loading: Loading) -> None:
    older = OLDER.get(name)
    if older is None or name not in loading.release.removed or name not in loading.catalogue:
        return
    why = f"kube-scheduler {loading.release.kube} no longer has this plugin; kschedd runs it as {older.last} did"
    place.reading.warn(place.path, name, why, f"instead: {older.instead}")


def read_plugin_config(fields: ConfigFields, profile: str, loading: Loading) -> dict[str, Any]:
    args: dict[str, Any] = {}
    catalogue = loading.catalogue
    for item in fields.items("pluginConfig"):
        inner = item.fields("name", "args")
        name = inner.needed_text("name") if inner else None
        if inner is None or name is None:
            continue
        name = current_name(name, loading)
        info = catalogue.get(name)
        if name in args:
            item.at("name", name).wrong("its arguments are given twice")
        elif info is None:
            item.at("name", name).wrong(*unknown_plugin(name, catalogue))
        args[name] = read_plugin_args(name, info, inner.mapping("args"), loading.context)
        loading.note(f"profiles[{profile}].pluginConfig[{name}]", item)
    return args
