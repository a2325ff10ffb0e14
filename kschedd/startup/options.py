"""What a daemon is asked for, and what its files say: options, configuration, plugins, admission.

Pure but for reading the files that are named. Raises what is wrong with them, as a KscheddError.
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
from kschedd.config.model import Config, LeaderElection
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
from kschedd.store.admission.chain import Admission, configured_plugins
from kschedd.store.creating.service_addresses import SERVICE_RANGE
from kschedd.store.store import MAX_OBJECT_BYTES

log = structlog.get_logger("kschedd")

_NOBODYS_SCHEDULER = "(none)"  # no name of a scheduler


@attrs.frozen
class MirrorOptions:
    """A cluster by its kubeconfig ("": as kubectl finds it) and context ("": the current one).

    `schedules`: its pods are scheduled from here. `leader_elect`: in place of the configuration's (None: as that says).
    """

    kubeconfig: str = ""
    context: str = ""
    schedules: bool = False
    leader_elect: bool | None = None

    def election(self, configured: LeaderElection) -> LeaderElection:
        return configured if self.leader_elect is None else attrs.evolve(configured, leader_elect=self.leader_elect)


@attrs.frozen
class DaemonOptions:
    """The daemon's options. None means the option's default."""

    socket: Path | None = None
    config_file: Path | None = None
    plugin_files: tuple[Path, ...] = ()
    state_dir: Path | None = None  # None: no persistence
    seed: int | None = None  # None: random
    log_level: str = "info"
    verbosity: int = 0  # kube-scheduler's; of what is logged at level debug, which parts
    controller_options: ControllerOptions = attrs.field(factory=ControllerOptions)
    without: frozenset[Part] = frozenset()  # parts of the cluster that others play
    audit: AuditFile | None = None  # log of writes
    otlp_endpoint: str = ""  # where traces and metrics are pushed to; "" nowhere
    limits: DaemonLimits = attrs.field(factory=DaemonLimits)
    listen: ListenSettings | None = None  # the socket on TCP as well
    http: ListenSettings | None = None  # Kubernetes' REST API as well
    enable_admission: tuple[str, ...] = ()  # admission plugins
    disable_admission: tuple[str, ...] = ()
    plugin_limit_s: float = PLUGIN_LIMIT_S
    plugin_start_limit_s: float = START_LIMIT_S  # for importing a plugin, and for constructing it
    leave_out: tuple[ObjectRef, ...] = ()  # do not restore these objects
    max_request_body_bytes: int = MAX_REQUEST_BYTES
    max_object_bytes: int = MAX_OBJECT_BYTES
    service_range: str = SERVICE_RANGE
    version: KubernetesVersion = DEFAULT  # whose decisions are made
    version_by_cluster: bool = False  # or rather those of the release that a dump or a mirrored cluster shows
    feature_gates: Mapping[str, bool] = attrs.field(factory=dict)
    unschedulable_flush_s: int | None = None
    origin: tuple[str, ...] = ()  # a dump that a new cluster starts as
    keep_secrets: bool = False  # the data of Secrets and ConfigMaps of the dump
    schedulers: Mapping[str, str] = {}  # of pods' schedulerName: the profile as by which they are scheduled
    speed: float = REAL  # seconds of the cluster in a real one; 0: virtual
    start_s: float | None = None  # the time at the first start; None: EPOCH where time is virtual, else the machine's
    mirror: MirrorOptions | None = None  # the real cluster whose objects are held here
    record_file: Path | None = None  # a new file, into which the run is recorded
    drop_damaged: bool = False  # move a damaged journal aside and start with its intact part


@attrs.define(eq=False)
class UnreadableFile(KscheddError):
    """A file named in the options that cannot be read."""

    file: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: cannot be read: {self.why}"


def read_options(options: DaemonOptions) -> tuple[Config, Registry]:
    """Load the configuration and plugins of the options. Raises ConfigErrors, PluginLoadError, UnreadableFile."""
    registry = Registry(start_limit_s=options.plugin_start_limit_s)
    registry.add_entry_points()
    for file in options.plugin_files:
        registry.add_file(file)
    return read_config(options, IN_TREE | registry.catalogue()), registry


def read_config(options: DaemonOptions, catalogue: Catalogue, *, pipes: bool = True) -> Config:
    """The configuration by file and flags. Raises ConfigErrors, UnreadableFile.

    Without `pipes` a file that is a pipe by now is not read: nobody may ever write into it.
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
    """The configuration of a scheduler that no pod can name: all of them are left to others."""
    return attrs.evolve(config, profiles=(attrs.evolve(config.profiles[0], scheduler_name=_NOBODYS_SCHEDULER),))


def admission_of(options: DaemonOptions, registry: Registry) -> Admission:
    """The admission chain of the options. Raises UnknownAdmissionPlugin, PluginLoadError."""
    configured = configured_plugins(options.enable_admission, options.disable_admission, registry.validating)
    others = registry.validating_plugins()
    return Admission({**admission_without(options.without), **configured}, others)


def version() -> str:
    try:
        return installed_version("kschedd")
    except PackageNotFoundError:
        return "not installed"
