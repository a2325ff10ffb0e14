"""The Policy file of kube-scheduler up to v1.22: predicates and priorities, converted to plugins.

Predicates become filters in a fixed order, which never depended on the file. PodToleratesNodeTaints and
CheckNodeUnschedulable are always included. Priorities become scores. A missing list means the default list; an empty
list means no entries. Queue sort, preemption and binding were not part of a Policy, so the current defaults apply.
RequestedToCapacityRatioPriority becomes the plugin of that name, which calculates as up to v1.16; the scores of its
shape may go up to 10 or, as in some files, up to 100.

Source: Kubernetes v1.19, scheduler/framework/plugins/legacy_registry.go, scheduler/factory.go (createFromConfig),
apis/config/legacy_types.go, apis/config/validation (ValidatePolicy).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.text.similar import did_you_mean
from kschedd.config.args import read_plugin_args
from kschedd.config.loading.context import Loading
from kschedd.config.loading.expansion import with_new_points
from kschedd.config.loading.extenders import legacy_extenders, read_extenders
from kschedd.config.loading.plugin_sets import FIELD_OF_POINT, PluginEntry, PluginSet
from kschedd.config.loading.policy_plugins import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    EQUAL,
    GONE,
    LABEL_PREDICATE,
    MANDATORY,
    PREDICATES,
    PRIORITIES,
    RATIO,
    RENAMED_PREDICATES,
    RENAMED_PRIORITIES,
    SERVICE_PREDICATE,
)
from kschedd.config.loading.profiles import made_profile
from kschedd.config.loading.releases import RELEASES, ConfigRelease
from kschedd.config.model import DEFAULT_SCHEDULER_NAME, EXTENSION_POINTS, Extender, PluginRef, Profile
from kschedd.config.parsing.reading import INT32, INT64, ConfigFields, ConfigValue
from kschedd.config.versions.rules import Rules

POLICY_RELEASE: Final = ConfigRelease("Policy", "v1.19", ())


@attrs.define
class _Args:
    """The arguments of several predicates or priorities for one plugin, and the weights of these priorities."""

    node_label: dict[str, list[str]] = attrs.field(factory=dict)
    service: dict[str, list[str]] = attrs.field(factory=dict)
    weights: dict[str, int] = attrs.field(factory=dict)  # by plugin
    first: dict[str, str] = attrs.field(factory=dict)  # by plugin: path of the first argument in the file
    ratio: ConfigValue | None = None


def read_policy(
    root: ConfigValue, loading: Loading, name: str = DEFAULT_SCHEDULER_NAME
) -> tuple[Profile, tuple[Extender, ...]]:
    """Return a Policy's profile with this name, and the Policy's extenders."""
    loading.release = POLICY_RELEASE
    fields = root.fields(
        *("apiVersion", "kind", "metadata", "predicates", "priorities", "extenders"),
        *("hardPodAffinitySymmetricWeight", "alwaysCheckAllPredicates"),
    )
    assert fields is not None, "the caller saw its kind"
    args = _Args()
    points: dict[str, list[PluginRef]] = {point: [] for point in EXTENSION_POINTS}
    points["pre_enqueue"] = [PluginRef("SchedulingGates")]
    points["queue_sort"] = [PluginRef("PrioritySort")]
    points["post_filter"] = [PluginRef("DefaultPreemption")]
    points["bind"] = [PluginRef("DefaultBinder")]
    predicates = _predicates(fields, args)
    for predicate in PREDICATES:
        for point, plugin in PREDICATES[predicate] if predicate in predicates else ():
            _add(points[point], plugin)
            if predicates[predicate]:
                loading.note_path(f"profiles[{name}].plugins.{FIELD_OF_POINT[point]}[{plugin}]", predicates[predicate])
    for plugin, (weight, pre_score, path) in _scores(fields, args).items():
        _add(points["score"], plugin, weight)
        if pre_score:
            _add(points["pre_score"], plugin)
        if path:
            loading.note_path(f"profiles[{name}].plugins.score[{plugin}]", path)
    defaults = {
        point: PluginSet((*set_.enabled, *(PluginEntry(ref.name) for ref in points[point])))
        for point, set_ in RELEASES["v1beta1"].default_sets(Rules(), {}).items()
    }
    completed = with_new_points({p: tuple(refs) for p, refs in points.items()}, defaults, loading.implements)
    profile = made_profile(name, completed, _arguments(fields, args, completed, loading, name), loading)
    extenders = read_extenders(legacy_extenders(fields), nodes_lose_pods=False)
    for number in range(len(extenders)):
        loading.note_path(f"extenders[{number}]", f"$.extenders[{number}]")
    if fields.boolean("alwaysCheckAllPredicates", False):
        why = "has no effect: a node's verdict is its first rejection, as kube-scheduler reports it since v1.23"
        root.reading.warn(fields.path("alwaysCheckAllPredicates"), True, why)
    return profile, extenders


def _add(refs: list[PluginRef], plugin: str, weight: int = 0) -> None:
    if plugin not in (ref.name for ref in refs):
        refs.append(PluginRef(plugin, weight))


def _unknown(place: ConfigValue, name: str, what: str, known: list[str]) -> None:
    place.at("name", name).wrong(f"no such {what}{did_you_mean(name, known, 1)}", ", ".join(sorted(known)))


# -- predicates ----------------------------------------------------------------------------------------------------


def _predicates(fields: ConfigFields, args: _Args) -> dict[str, str]:
    """Return the predicates that apply, each with its path; "" for defaults and predicates that are always included."""
    if fields.get("predicates") is None:
        return dict.fromkeys((*MANDATORY, *DEFAULT_PREDICATES), "")
    found = dict.fromkeys(MANDATORY, "")
    for place in fields.items("predicates"):
        inner = place.fields("name", "argument")
        given = inner.needed_text("name") if inner else None
        if inner is None or given is None:
            continue
        name = RENAMED_PREDICATES.get(given, given)
        argument = inner.mapping("argument")
        if argument is not None:
            own = _predicate_argument(argument, args)
            if name not in PREDICATES:  # a predicate that has an argument may have any name
                name = own or name
        if name in PREDICATES:
            found[name] = place.path
        elif given in GONE:
            place.reading.warn(inner.path("name"), given, f"has no effect: {GONE[given]}")
        elif argument is None:
            _unknown(place, given, "predicate", [*PREDICATES, *RENAMED_PREDICATES])
    return found


def _predicate_argument(argument: ConfigValue, args: _Args) -> str:
    fields = argument.fields("serviceAffinity", "labelsPresence")
    if fields is None:
        return ""
    affinity, presence = fields.mapping("serviceAffinity"), fields.mapping("labelsPresence")
    if (affinity is None) == (presence is None):
        argument.wrong("takes exactly one of its fields", "serviceAffinity, labelsPresence")
    elif affinity is not None:
        inner = affinity.fields("labels")
        args.first.setdefault("ServiceAffinity", argument.path)
        labels = [] if inner is None else inner.texts("labels")
        args.service.setdefault("affinityLabels", []).extend(text for _, text in labels)
        return SERVICE_PREDICATE
    elif presence is not None:
        args.first.setdefault("NodeLabel", argument.path)
        inner = presence.fields("labels", "presence")
        if inner is not None:
            kind = "presentLabels" if inner.boolean("presence", False) else "absentLabels"
            args.node_label.setdefault(kind, []).extend(text for _, text in inner.texts("labels"))
        return LABEL_PREDICATE
    return ""


# -- priorities ----------------------------------------------------------------------------------------------------


def _scores(fields: ConfigFields, args: _Args) -> dict[str, tuple[int, bool, str]]:
    """Return, in order, each plugin's weight, whether it has a PreScore, and its path ("" for a default)."""
    chosen: dict[str, tuple[int, str]] = {}
    if fields.get("priorities") is None:
        chosen = {name: (weight, "") for name, weight in DEFAULT_PRIORITIES.items()}
    for place in fields.items("priorities"):
        inner = place.fields("name", "weight", "argument")
        given = inner.needed_text("name") if inner else None
        if inner is None or given is None:
            continue
        weight = inner.integer("weight", 0, INT64)
        if not 1 <= weight <= INT32[1]:
            why = "a priority needs a weight"
            place.reading.report(inner.path("weight"), weight, why, f"1 to {INT32[1]}")
            continue
        name = RENAMED_PRIORITIES.get(given, given)
        argument = inner.mapping("argument")
        if argument is not None:
            if name not in PRIORITIES:  # the name of a priority with an argument is arbitrary
                name = _priority_argument(argument, weight, args) or name
        elif given in GONE or name == EQUAL:
            why = f"has no effect: {GONE.get(given, 'it is the same for each node')}"
            place.reading.warn(inner.path("name"), given, why)
            continue
        elif name not in PRIORITIES:
            _unknown(place, given, "priority", [*PRIORITIES, *RENAMED_PRIORITIES, RATIO, EQUAL])
            continue
        chosen[name] = (weight, place.path)
    scores: dict[str, tuple[int, bool, str]] = {}
    for name, (weight, path) in sorted(chosen.items()):
        if name in PRIORITIES:
            plugin, pre_score = PRIORITIES[name]
            scores[plugin] = (weight, pre_score, path)
        elif name in ("NodeLabel", "ServiceAffinity"):
            scores[name] = (args.weights[name], False, path)
        elif name == RATIO:
            scores[RATIO] = (weight, False, path)
    return scores


def _priority_argument(argument: ConfigValue, weight: int, args: _Args) -> str:
    """Return the plugin for a priority that has an argument; "" after a fault."""
    names = ("serviceAntiAffinity", "labelPreference", "requestedToCapacityRatioArguments")
    fields = argument.fields(*names)
    if fields is None:
        return ""
    given = [(name, place) for name in names if (place := fields.get(name)) is not None]
    if len(given) != 1:
        argument.wrong("takes exactly one of its fields", ", ".join(names))
        return ""
    name, place = given[0]
    if name == names[2]:
        if args.ratio is not None:
            place.wrong("given twice, where one priority of this kind can be")
        args.ratio = place
        return RATIO
    inner = place.fields("label", "presence") if name == names[1] else place.fields("label")
    label = inner.needed_text("label") if inner else None
    if inner is None or label is None:
        return ""
    if name == names[0]:
        plugin = "ServiceAffinity"
        args.service.setdefault("antiAffinityLabelsPreference", []).append(label)
    else:
        plugin = "NodeLabel"
        kind = "presentLabelsPreference" if inner.boolean("presence", False) else "absentLabelsPreference"
        args.node_label.setdefault(kind, []).append(label)
    args.first.setdefault(plugin, argument.path)
    before = args.weights.get(plugin, 0)
    labels = sum(map(len, _preferences(plugin, args))) - 1
    if before and before != labels * weight:
        argument.wrong(f"all priorities with a {name} need the same weight", str(before // labels))
    args.weights[plugin] = before + weight
    return plugin


def _preferences(plugin: str, arguments: _Args) -> list[list[str]]:
    args = arguments.service if plugin == "ServiceAffinity" else arguments.node_label
    return [labels for kind, labels in args.items() if kind.endswith("Preference")]


# -- arguments -----------------------------------------------------------------------------------------------------


def _arguments(
    fields: ConfigFields, arguments: _Args, points: Mapping[str, tuple[PluginRef, ...]], loading: Loading, name: str
) -> dict[str, Any]:
    taking_part = {ref.name for refs in points.values() for ref in refs}
    args: dict[str, Any] = {}

    def read(plugin: str, place: ConfigValue) -> None:
        if plugin in taking_part:
            args[plugin] = read_plugin_args(plugin, loading.catalogue[plugin], place, loading.context)
            loading.note(f"profiles[{name}].pluginConfig[{plugin}]", place)

    for plugin, given_args in (("NodeLabel", arguments.node_label), ("ServiceAffinity", arguments.service)):
        if given_args:
            read(plugin, ConfigValue(given_args, arguments.first[plugin], fields.place.reading))
    if arguments.ratio is not None:
        read(RATIO, arguments.ratio)
    hard = fields.integer("hardPodAffinitySymmetricWeight", 0, (0, 100))
    if hard and "InterPodAffinity" in taking_part:  # 0 means: not set
        given = {"hardPodAffinityWeight": hard}
        read("InterPodAffinity", fields.place.at("hardPodAffinitySymmetricWeight", given))
    return args
