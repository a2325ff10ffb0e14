"""Parsing and validation of in-tree plugin arguments: a profile's `pluginConfig`.

Source: Kubernetes v1.34, apis/config/validation/validation_pluginargs.go and apis/config/v1/defaults.go.
Differences: a field that v1.34 would silently ignore gives a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import cast

from kschedd.api.validation_names import label_value, qualified_name
from kschedd.config.args import (
    CAPACITY_SHAPE,
    CPU_AND_MEMORY,
    DefaultConstraint,
    DefaultingType,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InclusionPolicy,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    RawArgs,
    ResourceWeight,
    ScoringStrategy,
    ShapePoint,
    StrategyType,
    VolumeBindingArgs,
    WhenUnsatisfiable,
    default_args,
)
from kschedd.config.reading import INT32, INT64, ConfigFields, ConfigValue

API_VERSION = "kubescheduler.config.k8s.io/v1"

STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)

Gates = Mapping[str, bool]


def read_plugin_args(plugin: str, args: ConfigValue | None, gates: Gates) -> PluginArgs:
    """The arguments of `plugin`, typed for in-tree plugins; faults are added to `args.reading`."""
    if args is None:
        return default_args(plugin, gates)
    if plugin not in _READERS:
        if not isinstance(args.value, Mapping):
            args.wrong("must be a mapping")
            return RawArgs()
        return RawArgs(args.value)
    names, read = _READERS[plugin]
    fields = args.fields("apiVersion", "kind", *names)
    if fields is None:
        return default_args(plugin, gates)
    kind = f"{plugin}Args"
    if fields.text("kind", kind) != kind:
        fields.place.reading.report(
            fields.path("kind"), fields.text("kind"), "not the kind of this plugin's arguments", kind
        )
    if fields.text("apiVersion", API_VERSION) != API_VERSION:
        version = fields.text("apiVersion")
        fields.place.reading.report(fields.path("apiVersion"), version, "not supported", API_VERSION)
    return read(fields, gates)


def _fit(fields: ConfigFields, gates: Gates) -> PluginArgs:
    resources = []
    for place, name in fields.texts("ignoredResources"):
        _check_name(place, name)
        resources.append(name)
    groups = []
    for place, name in fields.texts("ignoredResourceGroups"):
        if "/" in name:
            place.wrong("the name of a resource group has no slash in it", "for example example.com")
        else:
            _check_name(place, name)
        groups.append(name)
    strategy = fields.mapping("scoringStrategy")
    return NodeResourcesFitArgs(
        ignored_resources=tuple(resources),
        ignored_resource_groups=tuple(groups),
        scoring_strategy=_strategy(strategy) if strategy else ScoringStrategy(),
    )


def _strategy(place: ConfigValue) -> ScoringStrategy:
    fields = place.fields("type", "resources", "requestedToCapacityRatio")
    if fields is None:
        return ScoringStrategy()
    if fields.get("type") is None:
        fields.missing("type", f"needed, and missing: one of {', '.join(STRATEGIES)}")
    kind = cast(StrategyType, fields.choice("type", "LeastAllocated", STRATEGIES))
    ratio = fields.mapping("requestedToCapacityRatio")
    shape: tuple[ShapePoint, ...] = ()
    if ratio is not None:
        inner = ratio.fields("shape")
        shape = _shape(inner) if inner else ()
        if kind != "RequestedToCapacityRatio":
            why = f"has no effect with {kind}"
            ratio.reading.warn(ratio.path, None, why, "RequestedToCapacityRatio as type")
    elif kind == "RequestedToCapacityRatio":
        fields.missing("requestedToCapacityRatio", "needed by the type RequestedToCapacityRatio, and missing")
    return ScoringStrategy(kind, _weights(fields, (1, 100)), shape)


def _weights(fields: ConfigFields, bounds: tuple[int, int], unique: bool = False) -> tuple[ResourceWeight, ...]:
    """`resources`: an empty list means cpu and memory, a weight of 0 or none means 1."""
    found: dict[str, ResourceWeight] = {}
    weights = []
    for item in fields.items("resources"):
        inner = item.fields("name", "weight")
        if inner is None:
            continue
        name = inner.needed_text("name")
        weight = inner.maybe_integer("weight", (0, bounds[1])) or 1
        if name is None:
            continue
        if unique and name in found:
            inner.place.reading.report(inner.path("name"), name, "given twice")
        found[name] = ResourceWeight(name, weight)
        weights.append(found[name])
    return tuple(weights) or CPU_AND_MEMORY


def _shape(fields: ConfigFields) -> tuple[ShapePoint, ...]:
    """`shape`: at least one point, utilisation 0 to 100 and increasing, score 0 to 10."""
    points: list[ShapePoint] = []
    places = fields.items("shape")
    if not places:
        fields.missing("shape", "needs at least one point")
    for place in places:
        inner = place.fields("utilization", "score")
        if inner is None:
            continue
        point = ShapePoint(inner.integer("utilization", 0, (0, 100)), inner.integer("score", 0, (0, 10)))
        if points and point.utilization <= points[-1].utilization:
            path = inner.path("utilization")
            place.reading.report(path, point.utilization, "must be larger than the point's before it")
        points.append(point)
    return tuple(points)


def _balanced(fields: ConfigFields, gates: Gates) -> PluginArgs:
    return NodeResourcesBalancedAllocationArgs(_weights(fields, (1, 1), unique=True))


def _node_affinity(fields: ConfigFields, gates: Gates) -> PluginArgs:
    added = fields.mapping("addedAffinity")
    if added is None:
        return NodeAffinityArgs()
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    inner = added.fields(required, preferred)
    if inner is None:
        return NodeAffinityArgs()
    selector = inner.mapping(required)
    terms = selector.fields("nodeSelectorTerms") if selector else None
    for term in terms.items("nodeSelectorTerms") if terms else []:
        _check_node_term(term)
    for item in inner.items(preferred):
        weighted = item.fields("weight", "preference")
        if weighted is None:
            continue
        weighted.integer("weight", 0)
        preference = weighted.mapping("preference")
        if preference is not None:
            _check_node_term(preference)
    return NodeAffinityArgs(added.value)


def _check_node_term(term: ConfigValue) -> None:
    fields = term.fields("matchExpressions", "matchFields")
    if fields is None:
        return
    for place in fields.items("matchExpressions"):
        requirement = place.fields("key", "operator", "values")
        if requirement is None:
            continue
        key = requirement.needed_text("key")
        if key is not None:
            _check_name(place.at("key", key), key)
        if requirement.needed_text("operator") is None:
            continue
        operator = requirement.choice("operator", "", NODE_OPERATORS)
        values = requirement.texts("values")
        where, shown = requirement.path("values"), [text for _, text in values]
        if operator in ("In", "NotIn") and not values:
            place.reading.report(where, shown, f"the operator {operator} needs values")
        elif operator in ("Exists", "DoesNotExist") and values:
            place.reading.report(where, shown, f"the operator {operator} takes no values")
        elif operator in ("Gt", "Lt") and (len(values) != 1 or not _INTEGER.fullmatch(shown[0])):
            place.reading.report(where, shown, f"the operator {operator} needs one value, a whole number")
        for value_place, value in values:
            for wrong in label_value(value):
                value_place.wrong(wrong)
    for place in fields.items("matchFields"):
        requirement = place.fields("key", "operator", "values")
        if requirement is None:
            continue
        requirement.needed_text("key")
        if requirement.needed_text("operator") is None:
            continue
        requirement.choice("operator", "", ("In", "NotIn"))
        if len(requirement.texts("values")) != 1:
            place.reading.report(requirement.path("values"), None, "a field needs exactly one value")


def _spread(fields: ConfigFields, gates: Gates) -> PluginArgs:
    kind = cast(DefaultingType, fields.choice("defaultingType", "System", ("System", "List")))
    places = fields.items("defaultConstraints")
    if places and kind == "System":
        why = "constraints of one's own need the defaultingType List"
        fields.place.reading.report(fields.path("defaultingType"), kind, why, "List")
    constraints: list[DefaultConstraint] = []
    for place in places:
        constraint = _constraint(place)
        if constraint is None:
            continue
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in ((one.topology_key, one.when_unsatisfiable) for one in constraints):
            place.wrong("the same topologyKey and whenUnsatisfiable as a constraint before it")
        constraints.append(constraint)
    return PodTopologySpreadArgs(tuple(constraints), kind)


def _constraint(place: ConfigValue) -> DefaultConstraint | None:
    fields = place.fields(
        "maxSkew",
        "topologyKey",
        "whenUnsatisfiable",
        "labelSelector",
        "minDomains",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
        "matchLabelKeys",
    )
    if fields is None:
        return None
    if fields.get("maxSkew") is None:
        fields.missing("maxSkew")
    skew = fields.integer("maxSkew", 1, (1, INT32[1]))
    key = fields.needed_text("topologyKey")
    if key is not None:
        _check_name(place.at("topologyKey", key), key)
    if fields.get("whenUnsatisfiable") is None:
        fields.missing("whenUnsatisfiable")
    when = fields.choice("whenUnsatisfiable", "ScheduleAnyway", ("DoNotSchedule", "ScheduleAnyway"))
    selector = fields.get("labelSelector")
    if selector is not None:
        selector.wrong("a default constraint has no selector; each pod's Services and owners give it")
    policies = ("Honor", "Ignore")
    return DefaultConstraint(
        max_skew=skew,
        topology_key=key or "",
        when_unsatisfiable=cast(WhenUnsatisfiable, when),
        min_domains=fields.maybe_integer("minDomains", (1, INT32[1])),
        node_affinity_policy=cast(InclusionPolicy, fields.choice("nodeAffinityPolicy", "Honor", policies)),
        node_taints_policy=cast(InclusionPolicy, fields.choice("nodeTaintsPolicy", "Ignore", policies)),
        match_label_keys=tuple(name for _, name in fields.texts("matchLabelKeys")),
    )


def _pod_affinity(fields: ConfigFields, gates: Gates) -> PluginArgs:
    return InterPodAffinityArgs(
        hard_pod_affinity_weight=fields.integer("hardPodAffinityWeight", 1, (0, 100)),
        ignore_preferred_terms_of_existing_pods=fields.boolean("ignorePreferredTermsOfExistingPods", False),
    )


def _preemption(fields: ConfigFields, gates: Gates) -> PluginArgs:
    percentage = fields.integer("minCandidateNodesPercentage", 10, (0, 100))
    absolute = fields.integer("minCandidateNodesAbsolute", 100, (0, INT32[1]))
    if percentage == 0 == absolute:
        path = fields.path("minCandidateNodesPercentage")
        why = "minCandidateNodesPercentage and minCandidateNodesAbsolute must not both be 0"
        fields.place.reading.report(path, 0, why)
    return DefaultPreemptionArgs(percentage, absolute)


def _volume_binding(fields: ConfigFields, gates: Gates) -> PluginArgs:
    timeout = fields.integer("bindTimeoutSeconds", 600, (0, INT64[1]))
    scored = gates.get("StorageCapacityScoring", False)
    given = fields.get("shape")
    if given is None:
        return VolumeBindingArgs(timeout, CAPACITY_SHAPE if scored else ())
    if not scored:
        given.wrong("a shape needs the feature gate StorageCapacityScoring, which is off by default")
        return VolumeBindingArgs(timeout)
    return VolumeBindingArgs(timeout, _shape(fields) if given.value else CAPACITY_SHAPE)


def _dynamic_resources(fields: ConfigFields, gates: Gates) -> PluginArgs:
    given = fields.get("filterTimeout")
    timeout = fields.duration_s("filterTimeout", 10.0)
    if given is not None and not gates.get("DRASchedulerFilterTimeout", True):
        given.wrong("the feature gate DRASchedulerFilterTimeout is off")
    elif given is not None and timeout < 0:
        given.wrong("must not be negative", "0s (no limit) or more")
    return DynamicResourcesArgs(timeout)


def _check_name(place: ConfigValue, name: str) -> None:
    for wrong in qualified_name(name):
        place.wrong(wrong)


_READERS: Mapping[str, tuple[tuple[str, ...], Callable[[ConfigFields, Gates], PluginArgs]]] = {
    "NodeResourcesFit": (("ignoredResources", "ignoredResourceGroups", "scoringStrategy"), _fit),
    "NodeResourcesBalancedAllocation": (("resources",), _balanced),
    "NodeAffinity": (("addedAffinity",), _node_affinity),
    "PodTopologySpread": (("defaultConstraints", "defaultingType"), _spread),
    "InterPodAffinity": (
        ("hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"),
        _pod_affinity,
    ),
    "DefaultPreemption": (("minCandidateNodesPercentage", "minCandidateNodesAbsolute"), _preemption),
    "VolumeBinding": (("bindTimeoutSeconds", "shape"), _volume_binding),
    "DynamicResources": (("filterTimeout",), _dynamic_resources),
}
