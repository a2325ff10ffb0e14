"""Loads a KubeSchedulerConfiguration, as text or as a mapping, into a `Config`; reports every fault found.

Source: Kubernetes v1.34, kube-scheduler/config/v1, apis/config/v1/defaults.go, apis/config/validation.
Differences: a negative weight and arguments for an unknown plugin are refused, where upstream silently accepts
them.  Only the v1 format is supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.config.args import NodeResourcesFitArgs, PluginArgs, default_args
from kschedd.config.expansion import (
    FIELD_OF_POINT,
    MULTI_POINT,
    PluginEntry,
    PluginSet,
    expand,
    merged,
    unknown_plugin,
)
from kschedd.config.extenders import read_extenders
from kschedd.config.faults import ConfigErrors
from kschedd.config.feature_gates import feature_gates as all_gates
from kschedd.config.in_tree import IN_TREE, REMOVED, Catalogue
from kschedd.config.model import (
    DEFAULT_SCHEDULER_NAME,
    ClientConnection,
    Config,
    Extender,
    LeaderElection,
    PluginRef,
    Profile,
)
from kschedd.config.plugin_args import API_VERSION, read_plugin_args
from kschedd.config.reading import INT32, INT64, ConfigFields, ConfigReader, ConfigValue, in_text_order
from kschedd.config.source import read_document

KIND = "KubeSchedulerConfiguration"
POINT_OF_FIELD = {field: point for point, field in FIELD_OF_POINT.items()}
NO_NAME = "a profile has no schedulerName, which only a single profile may leave out"


def load_config(
    text: str,
    source: str,
    *,
    catalogue: Catalogue = IN_TREE,
    feature_gates: Mapping[str, bool] | None = None,
) -> Config:
    """The configuration in `text`, YAML or JSON; raises `ConfigErrors` with all faults.

    `source` is the file's name in messages.  `catalogue` has all registered plugins, including in-tree ones.
    """
    document = read_document(text, source)
    return _config(document.value, ConfigReader(source, document), catalogue, all_gates(feature_gates))


def config_from_raw(
    raw: Mapping[str, Any] | None,
    *,
    catalogue: Catalogue = IN_TREE,
    feature_gates: Mapping[str, bool] | None = None,
    source: str = "configuration",
) -> Config:
    """The configuration in a mapping (None: the default one); as `load_config`, but faults have no lines."""
    if raw is None:
        return default_config(catalogue=catalogue, feature_gates=feature_gates)
    return _config(raw, ConfigReader(source), catalogue, all_gates(feature_gates))


def default_config(*, catalogue: Catalogue = IN_TREE, feature_gates: Mapping[str, bool] | None = None) -> Config:
    """The configuration of kube-scheduler v1.34 started without a configuration file."""
    raw = {"apiVersion": API_VERSION, "kind": KIND}
    return config_from_raw(raw, catalogue=catalogue, feature_gates=feature_gates)


def _config(value: Any, reading: ConfigReader, catalogue: Catalogue, gates: Mapping[str, bool]) -> Config:
    root = ConfigValue(value, "$", reading)
    fields = _root_fields(root)
    if fields is None:
        raise ConfigErrors(in_text_order(reading.faults))
    extenders = read_extenders(fields)
    profiles = _profiles(fields, catalogue, gates)
    initial = fields.integer("podInitialBackoffSeconds", 1, (1, INT64[1]))
    longest = fields.integer("podMaxBackoffSeconds", 10, INT64)
    if longest < initial:
        why = "must not be less than podInitialBackoffSeconds"
        reading.report(fields.path("podMaxBackoffSeconds"), longest, why, f"{initial} or more")
    profiling = fields.boolean("enableProfiling", True)
    config = Config(
        profiles=tuple(_with_ignored(profile, extenders) for profile in profiles),
        parallelism=fields.integer("parallelism", 16, (1, INT32[1])),
        percentage_of_nodes_to_score=_percentage(fields) or 0,
        pod_initial_backoff_s=initial,
        pod_max_backoff_s=longest,
        extenders=extenders,
        leader_election=_leader_election(fields.mapping("leaderElection")),
        client_connection=_client_connection(fields.mapping("clientConnection")),
        enable_profiling=profiling,
        enable_contention_profiling=fields.boolean("enableContentionProfiling", profiling),
        delay_cache_until_active=fields.boolean("delayCacheUntilActive", False),
        feature_gates=gates,
        warnings=in_text_order(reading.warnings),
    )
    if reading.faults:
        raise ConfigErrors(in_text_order(reading.faults))
    return config


def _percentage(fields: ConfigFields) -> int | None:
    """percentageOfNodesToScore; more than 100 counts as 100, with a warning."""
    name = "percentageOfNodesToScore"
    found = fields.maybe_integer(name)
    if found is not None and found < 0:
        fields.place.reading.report(fields.path(name), found, "out of range", "0 to 100")
    elif found is not None and found > 100:
        fields.place.reading.warn(fields.path(name), found, "counts as 100", "0 to 100")
        return 100
    return found


def _root_fields(root: ConfigValue) -> ConfigFields | None:
    """The top-level fields; None, with a fault reported, if this is not a configuration in a supported format."""
    if not isinstance(root.value, Mapping):
        root.wrong("a configuration is a mapping", f"apiVersion: {API_VERSION}, kind: {KIND}, ...")
        return None
    for field, allowed in (("apiVersion", API_VERSION), ("kind", KIND)):
        found = root.value.get(field)
        if found != allowed:
            why = "needed, and missing" if found is None else "not supported"
            root.at(field, found).wrong(why, allowed)
            return None
    return root.fields(
        "apiVersion",
        "kind",
        "parallelism",
        "leaderElection",
        "clientConnection",
        "enableProfiling",
        "enableContentionProfiling",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "profiles",
        "extenders",
        "delayCacheUntilActive",
    )


def _profiles(fields: ConfigFields, catalogue: Catalogue, gates: Mapping[str, bool]) -> list[Profile]:
    places = fields.items("profiles") or [fields.place.at("profiles", []).at(0, {})]
    profiles: list[Profile] = []
    names: dict[str, str] = {}
    for place in places:
        profile = _profile(place, len(places) == 1, catalogue, gates)
        if profile is None:
            continue
        name = profile.scheduler_name
        if name and name in names:
            place.at("schedulerName", name).wrong(f"the same name as {names[name]}")
        names[name] = place.path
        if profiles:
            _check_same_queue(profiles[0], profile, place)
        profiles.append(profile)
    return profiles


def _check_same_queue(first: Profile, profile: Profile, place: ConfigValue) -> None:
    """All profiles share one scheduling queue, so they must have the same QueueSort plugin and arguments."""
    sort, first_sort = profile.plugins["queue_sort"], first.plugins["queue_sort"]
    path = f"{place.path}.plugins.queueSort"
    if len(sort) != 1 or len(first_sort) != 1:
        return
    if sort != first_sort:
        why = "all profiles must sort the queue by the same plugin"
        place.reading.report(path, sort[0].name, why, first_sort[0].name)
    elif profile.args(sort[0].name) != first.args(sort[0].name):
        why = "all profiles must give the plugin that sorts the queue the same arguments"
        place.reading.report(f"{place.path}.pluginConfig", sort[0].name, why)


def _profile(place: ConfigValue, only: bool, catalogue: Catalogue, gates: Mapping[str, bool]) -> Profile | None:
    fields = place.fields("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig")
    if fields is None:
        return None
    if fields.get("schedulerName") is None:
        name = DEFAULT_SCHEDULER_NAME if only else ""
        if not only:
            fields.missing("schedulerName", NO_NAME)
    else:
        name = fields.needed_text("schedulerName") or ""
    plugins = _plugins(place, fields.mapping("plugins"), catalogue, gates)
    args = _plugin_config(fields, catalogue, gates)
    for taking_part in sorted({ref.name for refs in plugins.values() for ref in refs}):
        args.setdefault(taking_part, default_args(taking_part, gates))
    return Profile(
        scheduler_name=name,
        plugins=plugins,
        plugin_args=args,
        percentage_of_nodes_to_score=_percentage(fields),
    )


def _plugins(
    profile: ConfigValue, plugins: ConfigValue | None, catalogue: Catalogue, gates: Mapping[str, bool]
) -> dict[str, tuple[PluginRef, ...]]:
    custom: dict[str, PluginSet] = {}
    fields = plugins.fields(*POINT_OF_FIELD) if plugins else None
    faults_before = len(profile.reading.faults)
    for field, point in POINT_OF_FIELD.items() if fields else ():
        said = fields.mapping(field) if fields else None
        if said is not None:
            custom[point] = _plugin_set(said, point, catalogue)
    sets = merged(custom, gates)
    if len(profile.reading.faults) > faults_before:
        # The plugin sets are incomplete after faults: expanding them would only report consequential faults.
        return expand(sets, catalogue.get, lambda path, value, why, allowed: None, profile.path)
    return expand(sets, catalogue.get, profile.reading.report, profile.path)


def _plugin_set(place: ConfigValue, point: str, catalogue: Catalogue) -> PluginSet:
    fields = place.fields("enabled", "disabled")
    if fields is None:
        return PluginSet()
    enabled = []
    for item in fields.items("enabled"):
        inner = item.fields("name", "weight")
        name = inner.needed_text("name") if inner else None
        if inner is None or name is None:
            continue
        if name not in catalogue:
            item.at("name", name).wrong(*unknown_plugin(name, catalogue))
        weight = inner.integer("weight", 0, (0, INT32[1]))
        if weight and point not in (MULTI_POINT, "score"):
            place.reading.warn(inner.path("weight"), weight, "a weight counts only at score and multiPoint")
        enabled.append(PluginEntry(name, weight, item.path))
    disabled = []
    for item in fields.items("disabled"):
        # Upstream's type is Plugin here too, but only the name is used.
        inner = item.fields("name", "weight")
        name = inner.needed_text("name") if inner else None
        if inner is None or name is None:
            continue
        if name != "*" and name not in catalogue and name not in REMOVED:
            why, allowed = unknown_plugin(name, catalogue)
            place.reading.warn(inner.path("name"), name, why, f"*, {allowed}")
        disabled.append(name)
    return PluginSet(tuple(enabled), frozenset(disabled))


def _plugin_config(fields: ConfigFields, catalogue: Catalogue, gates: Mapping[str, bool]) -> dict[str, PluginArgs]:
    args: dict[str, PluginArgs] = {}
    for item in fields.items("pluginConfig"):
        inner = item.fields("name", "args")
        name = inner.needed_text("name") if inner else None
        if inner is None or name is None:
            continue
        if name in args:
            item.at("name", name).wrong("its arguments are given twice")
        elif name not in catalogue:
            item.at("name", name).wrong(*unknown_plugin(name, catalogue))
        args[name] = read_plugin_args(name, inner.mapping("args"), gates)
    return args


def _with_ignored(profile: Profile, extenders: tuple[Extender, ...]) -> Profile:
    """The profile with NodeResourcesFit ignoring the extenders' managed resources that are `ignoredByScheduler`."""
    ignored = [one.name for at in extenders for one in at.managed_resources if one.ignored_by_scheduler]
    fit = profile.plugin_args.get("NodeResourcesFit")
    if not ignored or not isinstance(fit, NodeResourcesFitArgs):
        return profile
    fit = attrs.evolve(fit, ignored_resources=(*fit.ignored_resources, *ignored))
    return attrs.evolve(profile, plugin_args={**profile.plugin_args, "NodeResourcesFit": fit})


def _leader_election(place: ConfigValue | None) -> LeaderElection:
    fields = place and place.fields(
        "leaderElect",
        "leaseDuration",
        "renewDeadline",
        "retryPeriod",
        "resourceLock",
        "resourceName",
        "resourceNamespace",
    )
    if not fields:
        return LeaderElection()
    # Upstream applies the default to each of these when it is empty or zero.
    election = LeaderElection(
        leader_elect=fields.boolean("leaderElect", True),
        lease_duration_s=fields.duration_s("leaseDuration", 15.0) or 15.0,
        renew_deadline_s=fields.duration_s("renewDeadline", 10.0) or 10.0,
        retry_period_s=fields.duration_s("retryPeriod", 2.0) or 2.0,
        resource_lock=fields.text("resourceLock", "leases") or "leases",
        resource_namespace=fields.text("resourceNamespace", "kube-system") or "kube-system",
        resource_name=fields.text("resourceName", "kube-scheduler") or "kube-scheduler",
    )
    if not election.leader_elect:
        return election
    report = fields.place.reading.report
    if election.resource_lock != "leases":
        report(fields.path("resourceLock"), election.resource_lock, "not supported", "leases")
    for field, seconds in (
        ("leaseDuration", election.lease_duration_s),
        ("renewDeadline", election.renew_deadline_s),
        ("retryPeriod", election.retry_period_s),
    ):
        if seconds < 0:
            report(fields.path(field), seconds, "must not be negative")
    if election.lease_duration_s <= election.renew_deadline_s:
        report(fields.path("leaseDuration"), None, "must be longer than renewDeadline")
    if election.renew_deadline_s <= election.retry_period_s:
        report(fields.path("renewDeadline"), None, "must be longer than retryPeriod")
    return election


def _client_connection(place: ConfigValue | None) -> ClientConnection:
    fields = place and place.fields("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst")
    if not fields:
        return ClientConnection()
    default = ClientConnection()
    return ClientConnection(
        kubeconfig=fields.text("kubeconfig"),
        accept_content_types=fields.text("acceptContentTypes"),
        content_type=fields.text("contentType") or default.content_type,
        qps=fields.number("qps", default.qps) or default.qps,
        burst=fields.integer("burst", default.burst, (0, INT32[1])) or default.burst,
    )
