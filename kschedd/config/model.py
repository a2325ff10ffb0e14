"""The internal configuration: the result of loading a file, which all other packages use.

Values only, all frozen. Profiles are complete: defaults are merged, MultiPoint is expanded, weights are set, and
arguments have types. `load.py` builds configurations from text; `changes.py` derives new configurations from existing
ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.config.args import RawArgs
from kschedd.config.parsing.faults import ConfigError
from kschedd.config.versions.feature_gates import defaults
from kschedd.config.versions.kube_versions import DEFAULT, KubernetesVersion
from kschedd.config.versions.rules import Rules

EXTENSION_POINTS = (
    "pre_enqueue",
    "queue_sort",
    "pre_filter",
    "filter",
    "post_filter",
    "pre_score",
    "score",
    "reserve",
    "permit",
    "pre_bind",
    "bind",
    "post_bind",
    "placement_generate",
    "placement_score",
)
SCORING: Final = ("score", "placement_score")
"""The extension points whose plugins have a weight."""

DEFAULT_SCHEDULER_NAME = "default-scheduler"


@attrs.frozen
class PluginRef:
    """A plugin at one extension point; `weight` is 1 or more at the points in `SCORING` and 0 elsewhere."""

    name: str
    weight: int = 0
    timeout_s: float | None = None
    """The time limit of a call there; None: the daemon's own (`limits`)."""


@attrs.frozen
class Profile:
    scheduler_name: str
    plugins: Mapping[str, tuple[PluginRef, ...]]
    """Extension point -> its plugins, in calling order. Has all extension points as keys."""
    plugin_args: Mapping[str, Any] = attrs.field(factory=dict)
    """Arguments (`kschedd.config.args`) of every enabled plugin, and of every other plugin with `pluginConfig`."""
    percentage_of_nodes_to_score: int | None = None
    """None: the value of the configuration. 0: adaptive."""

    def at(self, point: str) -> tuple[PluginRef, ...]:
        return self.plugins[point]

    def names(self) -> tuple[str, ...]:
        """Return each plugin that is enabled at some extension point once, in the order of first appearance."""
        return tuple(dict.fromkeys(ref.name for point in EXTENSION_POINTS for ref in self.plugins[point]))

    def args(self, plugin: str) -> Any:
        return self.plugin_args.get(plugin, RawArgs())

    def weight(self, plugin: str) -> int:
        """Return the plugin's score weight; 0 if it is not enabled at Score."""
        return next((ref.weight for ref in self.plugins["score"] if ref.name == plugin), 0)

    @property
    def queue_sort(self) -> str:
        return self.plugins["queue_sort"][0].name


@attrs.frozen
class ManagedResource:
    name: str
    ignored_by_scheduler: bool = False


@attrs.frozen
class ExtenderTLS:
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    """PEM; takes precedence over `cert_file`, as the next two do over their files."""
    key_data: bytes = attrs.field(default=b"", repr=False)
    ca_data: bytes = b""


@attrs.frozen
class Extender:
    """An HTTP extender. An empty verb means that the extender does not implement the verb."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls: ExtenderTLS | None = None
    http_timeout_s: float = 5.0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    """Empty: called for every pod; otherwise only for pods that request one of these."""
    ignorable: bool = False
    """Its failure does not fail the scheduling attempt."""
    nodes_lose_pods: bool = True
    """True if nodes in its filter's answer are scored without pods and images, as in kube-scheduler since 1.34."""


@attrs.frozen
class LeaderElection:
    leader_elect: bool = True
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0
    resource_lock: str = "leases"
    resource_namespace: str = "kube-system"
    resource_name: str = "kube-scheduler"


@attrs.frozen
class ClientConnection:
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float | None = None
    """Requests per second; a negative number is no limit. None: the default (50, or no limit on loopback)."""
    burst: int | None = None
    """Requests after a pause that are not delayed. None: the default, 100."""


@attrs.frozen
class Config:
    profiles: tuple[Profile, ...]
    parallelism: int = 16
    percentage_of_nodes_to_score: int = 0
    """0: adaptive."""
    pod_initial_backoff_s: int = 1
    pod_max_backoff_s: int = 10
    extenders: tuple[Extender, ...] = ()
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False
    version: KubernetesVersion = DEFAULT
    """The version whose decisions are reproduced."""
    feature_gates: Mapping[str, bool] = attrs.field(factory=lambda: defaults(DEFAULT.gates))
    """Every feature gate of the version, with its state."""
    unschedulable_flush_s: int = 300
    """The time after which an unschedulable pod is retried: podMaxInUnschedulablePodsDuration."""
    release: str = attrs.field(default="v1.34", eq=False)
    """The release whose defaults apply to fields that the file leaves out."""
    origins: Mapping[str, str] = attrs.field(factory=dict, eq=False, repr=False)
    """The origins of values in effect: "file:line", a flag, or a change.

    Keys are paths with profiles and plugins by name, such as `profiles[default-scheduler].plugins.score[NodeAffinity]`.
    A value without an entry is a default.
    """
    warnings: tuple[ConfigError, ...] = attrs.field(default=(), eq=False)
    """Warnings about suspicious but valid configuration."""

    def profile(self, scheduler_name: str) -> Profile | None:
        """Return the profile for pods with this `spec.schedulerName`; None if there is none."""
        return next((one for one in self.profiles if one.scheduler_name == scheduler_name), None)

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        return tuple(profile.scheduler_name for profile in self.profiles)

    def percentage(self, profile: Profile) -> int:
        """Return the percentageOfNodesToScore of the profile; 0 means adaptive."""
        own = profile.percentage_of_nodes_to_score
        return self.percentage_of_nodes_to_score if own is None else own

    def gate(self, name: str) -> bool:
        return self.feature_gates[name]

    @property
    def rules(self) -> Rules:
        """The rules of the version that apply with the configuration's feature gates."""
        return self.version.rules.under(self.feature_gates)


Raw = Mapping[str, Any]
"""An unparsed configuration or part of one: mappings, lists, strings, numbers, booleans, None."""
