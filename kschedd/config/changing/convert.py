"""Output of a configuration as KubeSchedulerConfiguration v1; comments mark settings that v1 cannot express.

Loading the output gives the same configuration: an extension point whose plugins differ from v1's default lists all of
its plugins, and the other points are left to the default. Features that only kschedd has (plugins of older releases)
are marked where they occur. Settings dropped at loading are listed at the top, with their line in the old file.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import yaml

from kschedd.config.args import written
from kschedd.config.in_tree import IN_TREE, OLDER, Catalogue
from kschedd.config.loading import limits
from kschedd.config.loading.context import default_args_of
from kschedd.config.loading.plugin_sets import FIELD_OF_POINT
from kschedd.config.model import (
    DEFAULT_SCHEDULER_NAME,
    SCORING,
    ClientConnection,
    Config,
    Extender,
    LeaderElection,
    Profile,
)
from kschedd.config.parsing.faults import ConfigError
from kschedd.config.parsing.reading import duration_text

_HEAD: Final = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def as_v1(config: Config, default: Config, catalogue: Catalogue = IN_TREE) -> dict[str, Any]:
    """Return the configuration as a v1 file. Values equal to those in `default` (v1's own defaults) are left out."""
    written: dict[str, Any] = dict(_HEAD)
    for field, value, usual in (
        ("parallelism", config.parallelism, default.parallelism),
        ("percentageOfNodesToScore", config.percentage_of_nodes_to_score, default.percentage_of_nodes_to_score),
        ("podInitialBackoffSeconds", config.pod_initial_backoff_s, default.pod_initial_backoff_s),
        ("podMaxBackoffSeconds", config.pod_max_backoff_s, default.pod_max_backoff_s),
        ("enableProfiling", config.enable_profiling, True),
        ("enableContentionProfiling", config.enable_contention_profiling, config.enable_profiling),
        ("delayCacheUntilActive", config.delay_cache_until_active, False),
        ("leaderElection", _election(config.leader_election), {}),
        ("clientConnection", _connection(config.client_connection), {}),
    ):
        if value != usual:
            written[field] = value
    usual_profile = default.profiles[0]
    profiles = [_profile(profile, config, usual_profile, catalogue) for profile in config.profiles]
    if profiles != [{"schedulerName": DEFAULT_SCHEDULER_NAME}]:
        written["profiles"] = profiles
    if config.extenders:
        written["extenders"] = [_extender(extender) for extender in config.extenders]
    return written


def converted(config: Config, default: Config, catalogue: Catalogue = IN_TREE) -> str:
    """Return the text of the v1 file."""
    top = [f"# {_remark(warning)}" for warning in config.warnings if not _is_stated_beside(warning, config)]
    top += [
        f"# extenders[{number}]: by v1 the nodes that its filter returns are scored without their pods "
        "(kubernetes#141781); nodeCacheCapable: true avoids it"
        for number, one in enumerate(config.extenders)
        if one.filter_verb and not one.node_cache_capable and not one.nodes_lose_pods
    ]
    text = yaml.safe_dump(as_v1(config, default, catalogue), sort_keys=False, allow_unicode=True, width=120)
    lines = [_marked(line) for line in text.splitlines()]
    return "\n".join([*top, *lines]) + "\n"


def _remark(warning: ConfigError) -> str:
    where = f"line {warning.line}, " if warning.line else ""
    shown = "" if warning.value is None else f" {warning.value}"
    instead = f" ({warning.allowed})" if warning.allowed else ""
    return " ".join(f"{where}{warning.path}:{shown}: {warning.why}{instead}".split())


def _is_stated_beside(warning: ConfigError, config: Config) -> bool:
    """Return whether the warning is about a plugin of an older release that the file marks where it occurs."""
    return warning.value in OLDER and any(warning.value in profile.names() for profile in config.profiles)


def _marked(line: str) -> str:
    if line.strip() == "arithmetic: difference":
        return f"{line}  # kube-scheduler v1.34 has no such argument, kschedd has: the balance as v1.18 computed it"
    name = line.strip().removeprefix("- name: ")
    older = OLDER.get(name) if name != line.strip() else None
    if older is None:
        return line
    return f"{line}  # kube-scheduler v1.34 has no such plugin, kschedd has; instead: {older.instead}"


def _profile(profile: Profile, config: Config, usual: Profile, catalogue: Catalogue) -> dict[str, Any]:
    profile_fields: dict[str, Any] = {"schedulerName": profile.scheduler_name}
    if profile.percentage_of_nodes_to_score is not None:
        profile_fields["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    plugins: dict[str, Any] = {}
    for point, refs in profile.plugins.items():
        if refs == usual.at(point):
            continue
        plugins[FIELD_OF_POINT[point]] = {
            **({"disabled": [{"name": "*"}]} if usual.at(point) else {}),
            **(
                {
                    "enabled": [
                        {
                            "name": ref.name,
                            **({"weight": ref.weight} if point in SCORING else {}),
                            **({} if ref.timeout_s is None else {limits.FIELD: ref.timeout_s}),
                        }
                        for ref in refs
                    ]
                }
                if refs
                else {}
            ),
        }
    if plugins:
        profile_fields["plugins"] = plugins
    by_extenders = any(one.ignored_by_scheduler for at in config.extenders for one in at.managed_resources)
    args = []
    for name in sorted(profile.plugin_args):
        given = written(profile.args(name))
        if by_extenders and isinstance(given, Mapping) and "ignoredResources" in given:
            # omit ignoredResources, because loading derives this field from the extenders
            given = {key: value for key, value in given.items() if key != "ignoredResources"}
        if given and given != written(default_args_of(name, catalogue, config.feature_gates)):
            args.append({"name": name, "args": given})
    if args:
        profile_fields["pluginConfig"] = args
    return profile_fields


def _extender(extender: Extender) -> dict[str, Any]:
    tls = extender.tls
    written: dict[str, Any] = {
        "urlPrefix": extender.url_prefix,
        "filterVerb": extender.filter_verb,
        "preemptVerb": extender.preempt_verb,
        "prioritizeVerb": extender.prioritize_verb,
        "weight": extender.weight,
        "bindVerb": extender.bind_verb,
        "enableHTTPS": extender.enable_https,
        "httpTimeout": duration_text(extender.http_timeout_s),
        "nodeCacheCapable": extender.node_cache_capable,
        "ignorable": extender.ignorable,
        "managedResources": [
            {"name": one.name, **({"ignoredByScheduler": True} if one.ignored_by_scheduler else {})}
            for one in extender.managed_resources
        ],
    }
    if tls is not None:
        written["tlsConfig"] = {
            key: value
            for key, value in (
                ("insecure", tls.insecure),
                ("serverName", tls.server_name),
                ("certFile", tls.cert_file),
                ("keyFile", tls.key_file),
                ("caFile", tls.ca_file),
                ("certData", _base64(tls.cert_data)),
                ("keyData", _base64(tls.key_data)),
                ("caData", _base64(tls.ca_data)),
            )
            if value
        }
    return {key: value for key, value in written.items() if value or key == "urlPrefix"}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _election(election: LeaderElection) -> dict[str, Any]:
    usual = LeaderElection()
    fields = (
        ("leaderElect", election.leader_elect, usual.leader_elect),
        ("leaseDuration", duration_text(election.lease_duration_s), duration_text(usual.lease_duration_s)),
        ("renewDeadline", duration_text(election.renew_deadline_s), duration_text(usual.renew_deadline_s)),
        ("retryPeriod", duration_text(election.retry_period_s), duration_text(usual.retry_period_s)),
        ("resourceNamespace", election.resource_namespace, usual.resource_namespace),
        ("resourceName", election.resource_name, usual.resource_name),
    )
    return {name: value for name, value, default in fields if value != default}


def _connection(connection: ClientConnection) -> dict[str, Any]:
    usual = ClientConnection()
    fields = (
        ("kubeconfig", connection.kubeconfig, usual.kubeconfig),
        ("acceptContentTypes", connection.accept_content_types, usual.accept_content_types),
        ("contentType", connection.content_type, usual.content_type),
        ("qps", connection.qps, usual.qps),
        ("burst", connection.burst, usual.burst),
    )
    return {name: value for name, value, default in fields if value != default}
