"""Reader of a DeschedulerPolicy (descheduler/v1alpha2). Errors name the line, the field and the allowed values.

Source: sigs.k8s.io/descheduler, pkg/api/types.go, pkg/descheduler/policyconfig.go, pkg/framework/plugins/*/types.go,
defaults.go and validation.go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.selecting.requirements import SelectorError
from kschedd.api.selecting.selector_text import SelectorTextError, parse_selector_text
from kschedd.api.selecting.selectors import LabelSelector, parse_label_selector
from kschedd.api.text.similar import did_you_mean
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import INT32, ConfigFields, ConfigReader, ConfigValue, in_text_order
from kschedd.config.parsing.source import read_document

API_VERSION: Final = "descheduler/v1alpha2"
KIND: Final = "DeschedulerPolicy"
EVICTOR: Final = "DefaultEvictor"
SYSTEM_CRITICAL: Final = 2_000_000_000  # lowest priority that is critical for the system
_EVERYTHING: Final = parse_selector_text("")
_COUNT: Final = (0, 2**63 - 1)
_POINTS: Final = ("presort", "sort", "deschedule", "balance", "filter", "preevictionfilter")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
DEFAULT_PROTECTIONS: Final = ("PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods")
EXTRA_PROTECTIONS: Final = ("PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims")


@attrs.frozen
class EvictionLimits:
    """The maximum numbers of evictions in one cycle; None means no limit."""

    node: int | None = None
    namespace: int | None = None
    total: int | None = None


@attrs.frozen
class ChosenPods:
    """The pods that a strategy considers, selected by namespace and labels."""

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    selector: LabelSelector = _EVERYTHING

    def contains(self, namespace: str, labels: Mapping[str, str]) -> bool:
        if self.include and namespace not in self.include:
            return False
        return namespace not in self.exclude and self.selector.matches(labels)


@attrs.frozen(kw_only=True)
class EvictorArgs:
    node_selector: LabelSelector = _EVERYTHING
    selector: LabelSelector = _EVERYTHING
    namespace_selector: LabelSelector = _EVERYTHING
    threshold: int | str = SYSTEM_CRITICAL  # a priority value, or the name of a PriorityClass
    node_fit: bool = False
    min_replicas: int = 0
    min_pod_age_s: float | None = None
    mandatory_no_eviction: bool = False
    protections: frozenset[str] = frozenset(DEFAULT_PROTECTIONS)
    protected_classes: frozenset[str] = frozenset()  # StorageClasses of protected claims; empty: all


@attrs.frozen(kw_only=True)
class ConditionFilter:
    """A filter of pod conditions; a field that is None matches every condition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    min_age_s: int | None = None


@attrs.frozen(kw_only=True)
class LifeTimeArgs:
    pods: ChosenPods
    max_age_s: int | None
    states: frozenset[str]
    include_kinds: frozenset[str]
    exclude_kinds: frozenset[str]
    conditions: tuple[ConditionFilter, ...]
    exit_codes: frozenset[int]
    init_containers: bool
    ephemeral_containers: bool


@attrs.frozen(kw_only=True)
class FailedPodsArgs:
    pods: ChosenPods
    exclude_kinds: frozenset[str]
    min_age_s: int
    reasons: frozenset[str]
    exit_codes: frozenset[int]
    init_containers: bool


@attrs.frozen(kw_only=True)
class RestartsArgs:
    pods: ChosenPods
    threshold: int
    states: frozenset[str]
    init_containers: bool


@attrs.frozen(kw_only=True)
class TaintsArgs:
    pods: ChosenPods
    prefer_no_schedule: bool
    excluded: frozenset[str]
    included: frozenset[str] | None  # None: all


@attrs.frozen(kw_only=True)
class AffinityStrategyArgs:
    pods: ChosenPods
    required: bool
    preferred: bool
    required_first: bool


@attrs.frozen(kw_only=True)
class AntiAffinityArgs:
    pods: ChosenPods


@attrs.frozen(kw_only=True)
class DuplicatesArgs:
    pods: ChosenPods
    exclude_kinds: frozenset[str]


@attrs.frozen(kw_only=True)
class SpreadArgs:
    pods: ChosenPods
    constraints: frozenset[str]
    node_fit: bool


@attrs.frozen(kw_only=True)
class LowUtilizationArgs:
    """The arguments of LowNodeUtilization; thresholds are percentages by resource."""

    thresholds: Mapping[str, float]
    targets: Mapping[str, float]
    deviations: bool
    number_of_nodes: int
    exclude: frozenset[str]
    most_of_node: int | None


@attrs.frozen(kw_only=True)
class HighUtilizationArgs:
    thresholds: Mapping[str, float]
    number_of_nodes: int
    only_thresholding: bool
    exclude: frozenset[str]


StrategyArgs = (
    LifeTimeArgs
    | FailedPodsArgs
    | RestartsArgs
    | TaintsArgs
    | AffinityStrategyArgs
    | AntiAffinityArgs
    | DuplicatesArgs
    | SpreadArgs
    | LowUtilizationArgs
    | HighUtilizationArgs
)


@attrs.frozen
class DeschedulerProfile:
    """`deschedule` and `balance`: the enabled strategies by name, in the order of the policy."""

    name: str
    evictor: EvictorArgs
    deschedule: tuple[tuple[str, StrategyArgs], ...]
    balance: tuple[tuple[str, StrategyArgs], ...]


@attrs.frozen
class DeschedulerPolicy:
    profiles: tuple[DeschedulerProfile, ...]
    node_selector: LabelSelector
    limits: EvictionLimits
    grace_period_s: int | None
    failure_events: bool = False  # whether each rejected eviction is recorded in an Event


def read_policy(text: str, source: str) -> DeschedulerPolicy:
    """Parse a policy. Raises ConfigErrors with all errors of the policy."""
    document = read_document(text, source)
    return _read(ConfigValue(document.value, "$", ConfigReader(source, document)))


def policy_of(raw: Mapping[str, Any], source: str = "policy") -> DeschedulerPolicy:
    """Parse a policy from a mapping. Raises ConfigErrors with all its errors."""
    return _read(ConfigValue(raw, "$", ConfigReader(source)))


def _read(place: ConfigValue) -> DeschedulerPolicy:
    names = ("apiVersion", "kind", "nodeSelector", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace")
    others = ("maxNoOfPodsToEvictTotal", "evictionFailureEventNotification", "gracePeriodSeconds", "profiles")
    metrics = ("metricsCollector", "metricsProviders")
    fields = place.fields(*names, *others, *metrics)
    reading = place.reading
    if fields is None:
        raise ConfigErrors(in_text_order(reading.faults))
    for name, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if (given := fields.needed_text(name)) not in (None, expected):
            fields.place.at(name, given).wrong("is not supported", expected)
    for name in metrics:
        if fields.get(name) is not None:
            fields.missing(name, "usage metrics are not supported: utilization is computed from requests")
    policy = DeschedulerPolicy(
        tuple(found for item in fields.items("profiles") if (found := _profile(item)) is not None),
        _selector_text(fields, "nodeSelector"),
        EvictionLimits(
            fields.maybe_integer("maxNoOfPodsToEvictPerNode", _COUNT),
            fields.maybe_integer("maxNoOfPodsToEvictPerNamespace", _COUNT),
            fields.maybe_integer("maxNoOfPodsToEvictTotal", _COUNT),
        ),
        fields.maybe_integer("gracePeriodSeconds", _COUNT),
        fields.boolean("evictionFailureEventNotification", False),
    )
    if reading.faults:
        raise ConfigErrors(in_text_order(reading.faults))
    return policy


def _profile(place: ConfigValue) -> DeschedulerProfile | None:
    fields = place.fields("name", "pluginConfig", "plugins")
    if fields is None:
        return None
    args: dict[str, ConfigValue] = {}
    for item in fields.items("pluginConfig"):
        config = item.fields("name", "args")
        name = None if config is None else config.needed_text("name")
        if config is None or name is None:
            continue
        if name not in _READERS and name != EVICTOR:
            hint = did_you_mean(name, [*_READERS, EVICTOR])
            config.place.at("name", name).wrong(f"no such plugin{hint}", ", ".join([EVICTOR, *_READERS]))
        elif name not in args:
            args[name] = config.get("args") or config.place.at("args", {})
    enabled = _enabled(fields.get("plugins"))
    read = {name: reader for name, reader in _READERS.items() if name in args}
    strategies = {name: found for name, reader in read.items() if (found := reader[1](args[name])) is not None}
    evictor = _evictor(args[EVICTOR]) if EVICTOR in args else EvictorArgs()
    points: dict[str, list[tuple[str, StrategyArgs]]] = {"deschedule": [], "balance": []}
    for point, chosen in points.items():
        for item in enabled[point]:
            name = item.value
            if name not in _READERS or _READERS[name][0] != point:
                allowed = [each for each, reader in _READERS.items() if reader[0] == point]
                item.wrong(
                    f"no plugin of the extension point {point}{did_you_mean(str(name), allowed)}", ", ".join(allowed)
                )
            elif name not in args:
                item.wrong("the profile's pluginConfig has no arguments for it")
            elif name in strategies:
                chosen.append((name, strategies[name]))
    for point in ("filter", "preevictionfilter"):
        for item in enabled[point]:
            if item.value != EVICTOR:
                item.wrong(f"no plugin of the extension point {point}", EVICTOR)
    return DeschedulerProfile(fields.text("name"), evictor, tuple(points["deschedule"]), tuple(points["balance"]))


def _enabled(place: ConfigValue | None) -> dict[str, list[ConfigValue]]:
    found: dict[str, list[ConfigValue]] = {point: [] for point in _POINTS}
    if place is None:
        return found
    given = place.value if isinstance(place.value, Mapping) else {}
    spelled = {str(key).lower(): key for key in given}  # the descheduler's decoder ignores the case of field names
    if place.fields(*(key for low, key in spelled.items() if low in _POINTS), *_POINTS) is None:
        return found
    for point in _POINTS:
        value = given.get(spelled.get(point))
        if value is None:
            continue
        fields = place.at(str(spelled[point]), value).fields("enabled", "disabled")
        found[point] = [] if fields is None else fields.items("enabled")
    return found


# -- arguments ----------------------------------------------------------------------------------------------------


def _selector_text(fields: ConfigFields, name: str) -> LabelSelector:
    text = fields.text(name)
    try:
        return parse_selector_text(text)
    except SelectorTextError as error:
        fields.place.at(name, text).wrong(str(error))
        return _EVERYTHING


def _selector(fields: ConfigFields, name: str) -> LabelSelector:
    """Return the label selector of a field; an absent or empty selector matches everything."""
    place = fields.get(name)
    if place is None or not _is_selector(place):
        return _EVERYTHING
    try:
        return parse_label_selector(place.value)
    except SelectorError as error:
        place.wrong(f"not a label selector: {error}")
        return _EVERYTHING


def _is_selector(place: ConfigValue) -> bool:
    """Return whether the fields of a label selector have the right types; record a fault for each other field."""
    before = len(place.reading.faults)
    fields = place.fields("matchLabels", "matchExpressions")
    if fields is not None:
        labels = fields.get("matchLabels")
        if labels is not None and labels.fields(any_other=True) is not None:
            for key, value in labels.value.items():
                labels.at(str(key), value).text()
        for item in fields.items("matchExpressions"):
            expression = item.fields("key", "operator", "values")
            if expression is not None:
                expression.needed_text("key")
                expression.needed_text("operator")
                expression.texts("values")
    return len(place.reading.faults) == before


def _texts(fields: ConfigFields, name: str) -> frozenset[str]:
    return frozenset(text for _, text in fields.texts(name))


def _codes(fields: ConfigFields, name: str) -> frozenset[int]:
    return frozenset(code for item in fields.items(name) if (code := item.integer(INT32)) is not None)


def _namespaces(fields: ConfigFields, name: str = "namespaces") -> tuple[frozenset[str], frozenset[str]]:
    place = fields.get(name)
    named = None if place is None else place.fields("include", "exclude")
    if place is None or named is None:
        return frozenset(), frozenset()
    include, exclude = _texts(named, "include"), _texts(named, "exclude")
    if include and exclude:
        place.wrong("include and exclude exclude each other")
    return include, exclude


def _chosen(fields: ConfigFields) -> ChosenPods:
    include, exclude = _namespaces(fields)
    return ChosenPods(include, exclude, _selector(fields, "labelSelector"))


_PODS: Final = ("namespaces", "labelSelector")
_META: Final = ("apiVersion", "kind")


def _life_time(place: ConfigValue) -> LifeTimeArgs | None:
    own = ("ownerKinds", "maxPodLifeTimeSeconds", "states", "conditions", "exitCodes")
    fields = place.fields(*_META, *_PODS, *own, "includingInitContainers", "includingEphemeralContainers")
    if fields is None:
        return None
    kinds = fields.get("ownerKinds")
    named = None if kinds is None else kinds.fields("include", "exclude")
    include = frozenset[str]() if named is None else _texts(named, "include")
    exclude = frozenset[str]() if named is None else _texts(named, "exclude")
    if kinds is not None and include and exclude:
        kinds.wrong("include and exclude exclude each other")
    args = LifeTimeArgs(
        pods=_chosen(fields),
        max_age_s=fields.maybe_integer("maxPodLifeTimeSeconds", _COUNT),
        states=_texts(fields, "states"),
        include_kinds=include,
        exclude_kinds=exclude,
        conditions=tuple(found for item in fields.items("conditions") if (found := _condition(item)) is not None),
        exit_codes=_codes(fields, "exitCodes"),
        init_containers=fields.boolean("includingInitContainers", False),
        ephemeral_containers=fields.boolean("includingEphemeralContainers", False),
    )
    if args.max_age_s is None and not (args.states or args.conditions or args.exit_codes):
        place.wrong("a filter is required", "maxPodLifeTimeSeconds, states, conditions, exitCodes")
    return args


def _condition(place: ConfigValue) -> ConditionFilter | None:
    fields = place.fields("type", "status", "reason", "minTimeSinceLastTransitionSeconds")
    if fields is None:
        return None
    age = fields.maybe_integer("minTimeSinceLastTransitionSeconds", _COUNT)
    found = ConditionFilter(
        type=fields.text("type"), status=fields.text("status"), reason=fields.text("reason"), min_age_s=age
    )
    if found == ConditionFilter():
        place.wrong("a field is required", "type, status, reason, minTimeSinceLastTransitionSeconds")
    return found


def _failed_pods(place: ConfigValue) -> FailedPodsArgs | None:
    own = ("excludeOwnerKinds", "minPodLifetimeSeconds", "reasons", "exitCodes", "includingInitContainers")
    fields = place.fields(*_META, *_PODS, *own)
    if fields is None:
        return None
    return FailedPodsArgs(
        pods=_chosen(fields),
        exclude_kinds=_texts(fields, "excludeOwnerKinds"),
        min_age_s=fields.integer("minPodLifetimeSeconds", 3600, _COUNT),
        reasons=_texts(fields, "reasons"),
        exit_codes=_codes(fields, "exitCodes"),
        init_containers=fields.boolean("includingInitContainers", False),
    )


def _restarts(place: ConfigValue) -> RestartsArgs | None:
    fields = place.fields(*_META, *_PODS, "podRestartThreshold", "includingInitContainers", "states")
    if fields is None:
        return None
    threshold = fields.integer("podRestartThreshold", 0)
    if threshold < 1:
        fields.missing("podRestartThreshold", "a number of at least 1 is required")
    return RestartsArgs(
        pods=_chosen(fields),
        threshold=threshold,
        states=_texts(fields, "states"),
        init_containers=fields.boolean("includingInitContainers", False),
    )


def _taints(place: ConfigValue) -> TaintsArgs | None:
    fields = place.fields(*_META, *_PODS, "includePreferNoSchedule", "excludedTaints", "includedTaints")
    if fields is None:
        return None
    included = fields.get("includedTaints")
    args = TaintsArgs(
        pods=_chosen(fields),
        prefer_no_schedule=fields.boolean("includePreferNoSchedule", False),
        excluded=_texts(fields, "excludedTaints"),
        included=None if included is None else _texts(fields, "includedTaints"),
    )
    if args.included and args.excluded:
        place.wrong("includedTaints and excludedTaints exclude each other")
    return args


def _node_affinity(place: ConfigValue) -> AffinityStrategyArgs | None:
    fields = place.fields(*_META, *_PODS, "nodeAffinityType")
    if fields is None:
        return None
    kinds = [
        kind for item in fields.items("nodeAffinityType") if (kind := item.choice((_REQUIRED, _PREFERRED))) is not None
    ]
    if not kinds:
        fields.missing("nodeAffinityType")
    return AffinityStrategyArgs(
        pods=_chosen(fields),
        required=_REQUIRED in kinds,
        preferred=_PREFERRED in kinds,
        required_first=kinds[:1] == [_REQUIRED],
    )


def _anti_affinity(place: ConfigValue) -> AntiAffinityArgs | None:
    fields = place.fields(*_META, *_PODS)
    return None if fields is None else AntiAffinityArgs(pods=_chosen(fields))


def _duplicates(place: ConfigValue) -> DuplicatesArgs | None:
    fields = place.fields(*_META, "namespaces", "excludeOwnerKinds")
    if fields is None:
        return None
    include, exclude = _namespaces(fields)
    return DuplicatesArgs(pods=ChosenPods(include, exclude), exclude_kinds=_texts(fields, "excludeOwnerKinds"))


def _spread(place: ConfigValue) -> SpreadArgs | None:
    fields = place.fields(*_META, *_PODS, "constraints", "topologyBalanceNodeFit")
    if fields is None:
        return None
    allowed = ("DoNotSchedule", "ScheduleAnyway")
    kinds = frozenset(kind for item in fields.items("constraints") if (kind := item.choice(allowed)) is not None)
    return SpreadArgs(
        pods=_chosen(fields),
        constraints=kinds or frozenset(("DoNotSchedule",)),
        node_fit=fields.boolean("topologyBalanceNodeFit", True),
    )


def _percentages(fields: ConfigFields, name: str) -> dict[str, float]:
    place = fields.get(name)
    if place is None:
        fields.missing(name)
        return {}
    given = place.fields(any_other=True)
    if given is None:
        return {}
    found: dict[str, float] = {}
    for resource in place.value:
        item = given.get(str(resource))
        share = None if item is None else item.number()
        if item is None or share is None:
            continue
        if not 0 <= share <= 100:
            item.wrong("out of range", "0 to 100")
        found[str(resource)] = share
    if not found:
        place.wrong("a threshold is required")
    return found


def _evictable_namespaces(fields: ConfigFields) -> frozenset[str]:
    include, exclude = _namespaces(fields, "evictableNamespaces")
    if include:
        fields.missing("evictableNamespaces", "include is not supported here: only exclude")
    return exclude


def _low_utilization(place: ConfigValue) -> LowUtilizationArgs | None:
    own = ("useDeviationThresholds", "thresholds", "targetThresholds", "numberOfNodes", "evictableNamespaces")
    fields = place.fields(*_META, *own, "evictionLimits", "metricsUtilization")
    if fields is None:
        return None
    if fields.get("metricsUtilization") is not None:
        fields.missing("metricsUtilization", "usage metrics are not supported: utilization is computed from requests")
    limits = fields.get("evictionLimits")
    limited = None if limits is None else limits.fields("node")
    args = LowUtilizationArgs(
        thresholds=_percentages(fields, "thresholds"),
        targets=_percentages(fields, "targetThresholds"),
        deviations=fields.boolean("useDeviationThresholds", False),
        number_of_nodes=fields.integer("numberOfNodes", 0),
        exclude=_evictable_namespaces(fields),
        most_of_node=None if limited is None else limited.maybe_integer("node", _COUNT),
    )
    if args.thresholds.keys() != args.targets.keys():
        place.wrong("thresholds and targetThresholds must have the same resources")
    elif not args.deviations:
        for resource, share in args.thresholds.items():
            if share > args.targets[resource]:
                place.wrong(f"the threshold of {resource} is greater than its target threshold")
    return args


def _high_utilization(place: ConfigValue) -> HighUtilizationArgs | None:
    fields = place.fields(*_META, "thresholds", "numberOfNodes", "evictionModes", "evictableNamespaces")
    if fields is None:
        return None
    modes = [item.choice(("OnlyThresholdingResources",)) for item in fields.items("evictionModes")]
    return HighUtilizationArgs(
        thresholds=_percentages(fields, "thresholds"),
        number_of_nodes=fields.integer("numberOfNodes", 0),
        only_thresholding="OnlyThresholdingResources" in modes,
        exclude=_evictable_namespaces(fields),
    )


_READERS: Final[Mapping[str, tuple[str, Callable[[ConfigValue], StrategyArgs | None]]]] = {
    "RemoveFailedPods": ("deschedule", _failed_pods),
    "RemovePodsHavingTooManyRestarts": ("deschedule", _restarts),
    "PodLifeTime": ("deschedule", _life_time),
    "RemovePodsViolatingNodeTaints": ("deschedule", _taints),
    "RemovePodsViolatingNodeAffinity": ("deschedule", _node_affinity),
    "RemovePodsViolatingInterPodAntiAffinity": ("deschedule", _anti_affinity),
    "RemoveDuplicates": ("balance", _duplicates),
    "RemovePodsViolatingTopologySpreadConstraint": ("balance", _spread),
    "LowNodeUtilization": ("balance", _low_utilization),
    "HighNodeUtilization": ("balance", _high_utilization),
}

# -- the evictor --------------------------------------------------------------------------------------------------

_OLD_FLAGS: Final = {  # deprecated flag -> the protection, and whether the flag adds or removes the protection
    "evictLocalStoragePods": ("PodsWithLocalStorage", False),
    "evictDaemonSetPods": ("DaemonSetPods", False),
    "evictSystemCriticalPods": ("SystemCriticalPods", False),
    "evictFailedBarePods": ("FailedBarePods", False),
    "ignorePvcPods": ("PodsWithPVC", True),
    "ignorePodsWithoutPDB": ("PodsWithoutPDB", True),
}


def _evictor(place: ConfigValue) -> EvictorArgs:
    selectors = ("nodeSelector", "labelSelector", "namespaceLabelSelector")
    own = ("priorityThreshold", "nodeFit", "minReplicas", "minPodAge", "noEvictionPolicy", "podProtections")
    fields = place.fields(*_META, *selectors, *own, *_OLD_FLAGS)
    if fields is None:
        return EvictorArgs()
    protections, classes = _protections(fields)
    min_age = fields.get("minPodAge")
    return EvictorArgs(
        node_selector=_selector_text(fields, "nodeSelector"),
        selector=_selector(fields, "labelSelector"),
        namespace_selector=_selector(fields, "namespaceLabelSelector"),
        threshold=_threshold(fields),
        node_fit=fields.boolean("nodeFit", False),
        min_replicas=fields.integer("minReplicas", 0, _COUNT),
        min_pod_age_s=None if min_age is None else min_age.duration_s(),
        mandatory_no_eviction=fields.choice("noEvictionPolicy", "", ("Preferred", "Mandatory")) == "Mandatory",
        protections=protections,
        protected_classes=classes,
    )


def _threshold(fields: ConfigFields) -> int | str:
    place = fields.get("priorityThreshold")
    given = None if place is None else place.fields("value", "name")
    if place is None or given is None:
        return SYSTEM_CRITICAL
    value, name = given.maybe_integer("value"), given.text("name")
    if value is not None and name:
        place.wrong("value and name exclude each other")
    if value is not None and value > SYSTEM_CRITICAL:
        place.at("value", value).wrong("out of range", f"at most {SYSTEM_CRITICAL}")
    return name or SYSTEM_CRITICAL if value is None else value


def _protections(fields: ConfigFields) -> tuple[frozenset[str], frozenset[str]]:
    """Return the active protections, and the protected StorageClasses."""
    found, old = set(DEFAULT_PROTECTIONS), []
    for flag, (protection, adds) in _OLD_FLAGS.items():
        if fields.boolean(flag, False):
            old.append(flag)
            (found.add if adds else found.discard)(protection)
    place = fields.get("podProtections")
    given = None if place is None else place.fields("extraEnabled", "defaultDisabled", "config")
    if place is None or given is None:
        return frozenset(found), frozenset()
    extra = [text for item in given.items("extraEnabled") if (text := item.choice(EXTRA_PROTECTIONS)) is not None]
    disabled = [
        text for item in given.items("defaultDisabled") if (text := item.choice(DEFAULT_PROTECTIONS)) is not None
    ]
    if (extra or disabled) and old:
        place.wrong(f"excludes {old[0]}")
    if extra or disabled:
        found = {*DEFAULT_PROTECTIONS}.difference(disabled).union(extra)
    return frozenset(found), _protected_classes(given.get("config"))


def _protected_classes(place: ConfigValue | None) -> frozenset[str]:
    config = None if place is None else place.fields("PodsWithPVC")
    claims = None if config is None else config.get("PodsWithPVC")
    named = None if claims is None else claims.fields("protectedStorageClasses")
    items: Sequence[ConfigValue] = () if named is None else named.items("protectedStorageClasses")
    classes = [fields.needed_text("name") for item in items if (fields := item.fields("name")) is not None]
    return frozenset(name for name in classes if name)
