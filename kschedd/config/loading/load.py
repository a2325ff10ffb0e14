"""Loading of kube-scheduler's configuration of any release, as text or as a mapping, into a `Config`.

Formats: KubeSchedulerConfiguration v1, v1beta3, v1beta2, v1beta1, v1alpha2 and v1alpha1, and the Policy file (v1). A
field that is missing in the file gets the default of the last release that read the file's format (`releases.py`).
Every fault is reported with its line. A setting that v1 does not have causes a warning that names the alternative.

Source: Kubernetes v1.34, kube-scheduler/config/v1, apis/config/v1/defaults.go, apis/config/validation,
scheduler/scheduler.go (buildExtenders); older releases as listed in `releases.py` and `policy.py`. Files are read
strictly, as in all of these releases. Differences from upstream: a negative weight and arguments for an unknown plugin
are rejected, although upstream silently accepts them; percentageOfNodesToScore over 100 counts as 100.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.config.in_tree import IN_TREE, Catalogue
from kschedd.config.loading.component import read_client_connection, read_leader_election
from kschedd.config.loading.context import Loading, ReadFile, read_beside
from kschedd.config.loading.extenders import legacy_extenders, read_extenders
from kschedd.config.loading.legacy import read_algorithm_source, with_switches
from kschedd.config.loading.policy import read_policy
from kschedd.config.loading.profiles import checked_queue_sort, percentage, read_profiles
from kschedd.config.loading.releases import RELEASES, V1
from kschedd.config.model import Config, Extender, Profile
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import INT32, INT64, ConfigFields, ConfigReader, ConfigValue, in_text_order
from kschedd.config.parsing.source import read_document
from kschedd.config.versions.feature_gates import feature_gates as all_gates
from kschedd.config.versions.kube_versions import DEFAULT, KubernetesVersion

KIND = "KubeSchedulerConfiguration"
POLICY = "Policy"
API_GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{API_GROUP}/v1"


def load_config(
    text: str,
    source: str,
    *,
    catalogue: Catalogue = IN_TREE,
    version: KubernetesVersion = DEFAULT,
    feature_gates: Mapping[str, bool] | None = None,
    read_file: ReadFile | None = None,
) -> Config:
    """Return the configuration in `text`, which is YAML or JSON. Raise `ConfigErrors` with all faults.

    `source` is the name of the file in messages. `catalogue` contains all registered plugins, including in-tree ones.
    `version` is the version whose defaults, feature gates and rules apply. `read_file` returns the text of a Policy
    file that the configuration names. By default the path is relative to `source`.
    """
    document = read_document(text, source)
    reading = ConfigReader(source, document)
    gates = all_gates(feature_gates, version.gates)
    return _config(document.value, Loading(reading, catalogue, version, gates, read_file or read_beside(source)))


def config_from_raw(
    raw: Mapping[str, Any] | None,
    *,
    catalogue: Catalogue = IN_TREE,
    version: KubernetesVersion = DEFAULT,
    feature_gates: Mapping[str, bool] | None = None,
    source: str = "configuration",
) -> Config:
    """Return the configuration in a mapping (None: the default configuration). Faults have no line numbers."""
    if raw is None:
        return default_config(catalogue=catalogue, version=version, feature_gates=feature_gates)
    reading = ConfigReader(source)
    gates = all_gates(feature_gates, version.gates)
    return _config(raw, Loading(reading, catalogue, version, gates, read_beside(source)))


def default_config(
    *,
    catalogue: Catalogue = IN_TREE,
    version: KubernetesVersion = DEFAULT,
    feature_gates: Mapping[str, bool] | None = None,
) -> Config:
    """Return the configuration of kube-scheduler of that version when it is started without a configuration file."""
    raw = {"apiVersion": API_VERSION, "kind": KIND}
    return config_from_raw(raw, catalogue=catalogue, version=version, feature_gates=feature_gates)


def _config(value: Any, loading: Loading) -> Config:
    root = ConfigValue(value, "$", loading.reading)
    config = _read(root, loading)
    if loading.reading.faults or config is None:
        raise ConfigErrors(in_text_order(loading.reading.faults), in_text_order(loading.reading.warnings))
    return attrs.evolve(config, warnings=in_text_order(loading.reading.warnings), origins=loading.origins)


def _read(root: ConfigValue, loading: Loading) -> Config | None:
    """Read the root. Return None, after reporting a fault, if the text is not a configuration in a known format."""
    if not isinstance(root.value, Mapping):
        root.wrong("a configuration is a mapping", f"apiVersion: {API_VERSION}, kind: {KIND}, ...")
        return None
    version, kind = root.value.get("apiVersion"), root.value.get("kind")
    if kind == POLICY and version in ("v1", API_VERSION):
        profile, extenders = read_policy(root, loading)
        profile = _with_ignored(profile, extenders, loading)
        return Config(
            (profile,),
            extenders=extenders,
            version=loading.version,
            feature_gates=loading.gates,
            release=loading.release_name,
        )
    known = {f"{API_GROUP}/{one}": release for one, release in RELEASES.items()}
    release = known.get(version) if isinstance(version, str) else None
    if release is None:
        if kind == POLICY:
            root.at("apiVersion", version).wrong("required, but missing" if version is None else "not supported", "v1")
        else:
            why = "required, but missing" if version is None else "not supported"
            root.at("apiVersion", version).wrong(why, ", ".join(known))
        return None
    if kind != KIND:
        root.at("kind", kind).wrong("required, but missing" if kind is None else "not supported", KIND)
        return None
    loading.release = release
    fields = root.fields(*release.fields)
    assert fields is not None, "it is a mapping"
    return _configuration(fields, loading)


def _configuration(fields: ConfigFields, loading: Loading) -> Config:
    report = loading.reading.report
    spelled = legacy_extenders(fields) if loading.release.version == "v1alpha2" else fields
    extenders = read_extenders(spelled, nodes_lose_pods=loading.release is V1)
    if loading.release.version == "v1alpha1":
        profiles, extenders = read_algorithm_source(fields, loading)
    else:
        profiles = read_profiles(fields, loading)
        checked_queue_sort(profiles, fields)
        if loading.release.version == "v1alpha2":
            profiles = with_switches(profiles, fields, loading)
    _warn_of_addresses(fields)
    initial = fields.integer("podInitialBackoffSeconds", 1, (1, INT64[1]))
    longest = fields.integer("podMaxBackoffSeconds", 10, INT64)
    if longest < initial:
        why = "must not be less than podInitialBackoffSeconds"
        report(fields.path("podMaxBackoffSeconds"), longest, why, f"{initial} or more")
    profiling = fields.boolean("enableProfiling", True)
    if loading.release.version != "v1alpha1":
        for number in range(len(extenders)):
            loading.note_path(f"extenders[{number}]", f"$.extenders[{number}]")
    for name in ("parallelism", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds"):
        loading.note(name, fields.get(name))
    return Config(
        profiles=tuple(_with_ignored(profile, extenders, loading) for profile in profiles),
        parallelism=fields.integer("parallelism", 16, (1, INT32[1])),
        percentage_of_nodes_to_score=percentage(fields) or 0,
        pod_initial_backoff_s=initial,
        pod_max_backoff_s=longest,
        extenders=extenders,
        leader_election=read_leader_election(fields.mapping("leaderElection"), loading.release),
        client_connection=read_client_connection(fields.mapping("clientConnection")),
        enable_profiling=profiling,
        enable_contention_profiling=fields.boolean("enableContentionProfiling", profiling),
        delay_cache_until_active=fields.boolean("delayCacheUntilActive", False),
        version=loading.version,
        feature_gates=loading.gates,
        release=loading.release_name,
    )


def _warn_of_addresses(fields: ConfigFields) -> None:
    for name in ("healthzBindAddress", "metricsBindAddress"):
        given = fields.get(name)
        if given is not None:
            why = "has no effect: since v1.23 flags set the address of kube-scheduler's health and metrics"
            given.reading.warn(given.path, given.value, why)


def _with_ignored(profile: Profile, extenders: tuple[Extender, ...], loading: Loading) -> Profile:
    """Return the profile in which NodeResourcesFit ignores the managed resources that are `ignoredByScheduler`.

    The ignored resources replace the plugin's own ignoredResources, as in scheduler.go (buildExtenders).
    """
    ignored = tuple([one.name for at in extenders for one in at.managed_resources if one.ignored_by_scheduler])
    fit = profile.plugin_args.get("NodeResourcesFit")
    if not ignored or fit is None:
        return profile
    lost = [name for name in fit.ignored_resources if name not in ignored]
    if lost:
        why = (
            f"NodeResourcesFit of {profile.scheduler_name} does not ignore these: ignoredByScheduler takes their place"
        )
        loading.reading.warn("$.extenders", ", ".join(lost), why)
    fit = attrs.evolve(fit, ignored_resources=ignored)
    return attrs.evolve(profile, plugin_args={**profile.plugin_args, "NodeResourcesFit": fit})
