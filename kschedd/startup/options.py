"""The options of a daemon and the content of its files: configuration, plugins, admission.

This module does no I/O except reading the files in the options. An error in a file is raised as a KscheddError.
"""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path

import attrs
import structlog

from kschedd.access.audit_log import AuditFile
from kschedd.access.credentials import ListenSettings
from kschedd.actors.clock import REAL
from kschedd.config.changing.changes import with_flags, with_schedulers
from kschedd.config.in_tree import IN_TREE, Catalogue
from kschedd.config.loading.context import read_beside
from kschedd.config.loading.load import default_config, load_config
from kschedd.config.model import ClientConnection, Config, LeaderElection
from kschedd.config.versions.feature_gates import without_effect
from kschedd.config.versions.kube_versions import DEFAULT, KubernetesVersion
from kschedd.controllers.options import ControllerOptions
from kschedd.controllers.parts import Part, admission_without
from kschedd.errors import KscheddError
from kschedd.framework.guard import PLUGIN_LIMIT_S, START_LIMIT_S
from kschedd.framework.registry import Registry
from kschedd.input_files import open_input
from kschedd.limits import MAX_REQUEST_BYTES, DaemonLimits
from kschedd.object_faults import ObjectRef
from kschedd.store.admission.chain import SERVICE_ACCOUNT, Admission, configured_plugins
from kschedd.store.creating.service_addresses import SERVICE_RANGE
from kschedd.store.store import MAX_OBJECT_BYTES
from kschedd.store.webhooks.modes import WebhookMode

log = structlog.get_logger("kschedd")

_NOBODYS_SCHEDULER = "(none)"  # not valid as the name of a scheduler


@attrs.frozen
class MirrorOptions:
    """A cluster: its kubeconfig ("" for the file that kubectl uses) and its context ("" for the current context).

    `schedules` is true if this daemon schedules the cluster's pods. `leader_elect` overrides the configuration unless
    it is None; `qps` and `burst` override the limits of requests in the same way.
    """

    kubeconfig: str = ""
    context: str = ""
    schedules: bool = False
    leader_elect: bool | None = None
    qps: float | None = None
    burst: int | None = None

    def election(self, configured: LeaderElection) -> LeaderElection:
        return configured if self.leader_elect is None else attrs.evolve(configured, leader_elect=self.leader_elect)

    def pace(self, configured: ClientConnection) -> ClientConnection:
        return attrs.evolve(configured, qps=self.qps or configured.qps, burst=self.burst or configured.burst)


@attrs.frozen
class DaemonOptions:
    """The daemon's options. None means the default of the option."""

    socket: Path | None = None
    config_file: Path | None = None
    plugin_files: tuple[Path, ...] = ()
    state_dir: Path | None = None  # None: no persistence
    seed: int | None = None  # None: random
    log_level: str = "info"
    verbosity: int = 0  # kube-scheduler's verbosity, which selects the messages of level debug that are logged
    controller_options: ControllerOptions = attrs.field(factory=ControllerOptions)
    without: frozenset[Part] = frozenset()  # controllers that the daemon does not run
    audit: AuditFile | None = None  # log of writes
    otlp_endpoint: str = ""  # address to which traces and metrics are sent; "": nowhere
    limits: DaemonLimits = attrs.field(factory=DaemonLimits)
    listen: ListenSettings | None = None  # serve the socket's protocol on TCP as well
    http: ListenSettings | None = None  # serve the Kubernetes REST API as well
    web: bool = False  # serve the page in the browser on the port of the REST API
    web_controls: bool = False  # users of the page may stop and step the scheduler and move virtual time
    descriptions: Path | None = None  # an OpenAPI document whose descriptions the REST API serves
    enable_admission: tuple[str, ...] = ()  # admission plugins
    disable_admission: tuple[str, ...] = ()
    plugin_limit_s: float = PLUGIN_LIMIT_S
    plugin_start_limit_s: float = START_LIMIT_S  # time limit in seconds for importing a plugin, and for constructing it
    leave_out: tuple[ObjectRef, ...] = ()  # objects that are not restored
    max_request_body_bytes: int = MAX_REQUEST_BYTES
    max_object_bytes: int = MAX_OBJECT_BYTES
    service_range: str = SERVICE_RANGE
    webhooks: WebhookMode = "skip"
    rbac: bool = False  # authorize requests by Roles and bindings (--authorization-mode RBAC)
    version: KubernetesVersion = DEFAULT  # Kubernetes version whose rules apply
    version_by_cluster: bool = False  # use the release of the dump or of the mirrored cluster instead
    feature_gates: Mapping[str, bool] = attrs.field(factory=dict)
    unschedulable_flush_s: int | None = None
    default_class: bool = False  # whether a new cluster has a default StorageClass
    origin: tuple[str, ...] = ()  # dump with which a new cluster starts
    copied: bool = False  # whether a dump was loaded into the cluster, in this run or earlier
    keep_secrets: bool = False  # load the data of Secrets and ConfigMaps from the dump
    schedulers: Mapping[str, str] = {}  # for each schedulerName of pods: the profile that schedules these pods
    speed: float = REAL  # cluster seconds per real second; 0: virtual time
    start_s: float | None = None  # time at the first start; None: EPOCH in virtual time, otherwise the machine's time
    mirror: MirrorOptions | None = None  # the real cluster to mirror
    record_file: Path | None = None  # a new file into which the run is recorded
    drop_damaged: bool = False  # move a damaged journal aside and start with its intact part


@attrs.define(eq=False)
class UnreadableFile(KscheddError):
    """A file in the options cannot be read."""

    file: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: cannot be read: {self.why}"


def read_options(options: DaemonOptions) -> tuple[Config, Registry]:
    """Load the configuration and the plugins that the options specify.

    Raises ConfigErrors, PluginLoadError, UnreadableFile.
    """
    registry = Registry(start_limit_s=options.plugin_start_limit_s)
    registry.add_entry_points()
    for file in options.plugin_files:
        registry.add_file(file)
    return read_config(options, IN_TREE | registry.catalogue()), registry


def read_config(options: DaemonOptions, catalogue: Catalogue, *, pipes: bool = True) -> Config:
    """Return the configuration from file and flags. Raises ConfigErrors, UnreadableFile.

    Without `pipes`, a file that has become a pipe is not read, because reading it might block forever.
    """
    version, gates = options.version, options.feature_gates
    if options.config_file is None:
        config = default_config(catalogue=catalogue, version=version, feature_gates=gates)
    else:
        try:
            with open_input(options.config_file, pipes=pipes) as file:
                text = file.read().decode("utf-8")
        except (OSError, UnicodeDecodeError) as wrong:
            raise UnreadableFile(str(options.config_file), getattr(wrong, "strerror", None) or str(wrong)) from wrong
        source = str(options.config_file)
        config = load_config(
            text,
            source,
            catalogue=catalogue,
            version=version,
            feature_gates=gates,
            read_file=read_beside(source, pipes=pipes),
        )
    for warning in config.warnings:
        log.warning("config", what=str(warning))
    for gate in without_effect(gates, version.gates):
        log.warning("config", what=f"--feature-gates: {gate} has no effect here: nothing depends on it")
    config = with_flags(config, gates, options.unschedulable_flush_s)
    config = with_schedulers(config, options.schedulers)
    return without_scheduler(config) if "scheduler" in options.without else config


def without_scheduler(config: Config) -> Config:
    """Return the configuration of a scheduler whose name no pod can use, so that it schedules no pods."""
    return attrs.evolve(config, profiles=(attrs.evolve(config.profiles[0], scheduler_name=_NOBODYS_SCHEDULER),))


def admission_of(options: DaemonOptions, registry: Registry) -> Admission:
    """Return the admission chain for the options. Raises UnknownAdmissionPlugin, PluginLoadError."""
    configured = configured_plugins(options.enable_admission, options.disable_admission, registry.validating)
    others = registry.validating_plugins()
    return Admission({**admission_without(options.without), **configured}, others, accounts=has_accounts(options))


def has_accounts(options: DaemonOptions) -> bool:
    """Return whether each namespace gets the objects that pods mount: its controllers run, and it is no copy."""
    plugin_off = SERVICE_ACCOUNT in options.disable_admission and SERVICE_ACCOUNT not in options.enable_admission
    copied = options.copied or options.origin or options.mirror is not None
    return not copied and not plugin_off and "controllers" not in options.without


def version() -> str:
    try:
        return installed_version("kschedd")
    except PackageNotFoundError:
        return "not installed"
