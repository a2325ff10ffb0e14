"""Options of the controllers, named like the flags of kube-controller-manager and of the descheduler.

`kschedd run` has a flag for each option; scenarios use the command `controllers`. Values are given as text, as in
flags. Source: Kubernetes v1.34, cmd/kube-controller-manager/app/options.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.api.simulation.pod_behavior import DEFAULT, PodBehavior
from kschedd.api.text.durations import DurationError, parse_duration, show_duration
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.controllers.nodes.zones import NodeLifecycleConfig
from kschedd.descheduler.policy import read_policy
from kschedd.errors import KscheddError
from kschedd.input_files import open_input
from kschedd.pools.reading import PoolFile, read_pools

TERMINATED_POD_THRESHOLD: Final = 12_500
_WAITS: Final = "waits_for_configuration"  # name of the field of PodBehavior


@attrs.frozen
class ControllerOptions:
    lifecycle: NodeLifecycleConfig = attrs.field(factory=NodeLifecycleConfig)
    terminated_pod_gc_threshold: int = TERMINATED_POD_THRESHOLD
    cloud_provider: str = ""  # "external": nodes register with the taint `uninitialized`
    cloud_init_delay_s: float | None = None  # delay before nodes are initialized; None: only a command initializes them
    pod_behavior: PodBehavior | None = None  # of new pods; None: they run until they are deleted
    descheduler: str = ""  # a DeschedulerPolicy as YAML or JSON; "": there is no descheduler
    descheduling_interval_s: float = 300.0
    pools: str = ""  # files with node pools, joined as YAML documents; "": no autoscaler


@attrs.define(eq=False)
class OptionError(KscheddError):
    """An option with an invalid value."""

    name: str
    text: str
    why: str

    def __str__(self) -> str:
        return f'--{self.name} "{self.text[:60]}": {self.why}'


@attrs.frozen
class Option:
    field: str  # name of a field of NodeLifecycleConfig, ControllerOptions or PodBehavior
    read: Callable[[str], Any]  # parses the value, or raises ValueError with the reason
    default: str
    help: str
    is_file: bool = False  # whether the value is the path of a file


def _positive_duration(text: str) -> float:
    seconds = _duration(text)
    if seconds <= 0:
        raise ValueError("must be longer than 0")
    return seconds


def _duration(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except DurationError:
        raise ValueError("must be a duration, such as 50s or 1m30s") from None
    if seconds < 0:
        raise ValueError("must not be negative")
    return seconds


def _rate(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError("must be a number, such as 0.1") from None
    if not 0 <= number < math.inf:
        raise ValueError("must be a number of at least 0")
    return number


def _share(text: str) -> float:
    number = _rate(text)
    if number > 1:
        raise ValueError("must be a number from 0 to 1")
    return number


def _provider(text: str) -> str:
    if text not in ("", "external"):
        raise ValueError('must be "external" or empty')
    return text


def _policy(path: str) -> str:
    """Return the text of a file with a valid DeschedulerPolicy."""
    try:
        with open_input(Path(path), pipes=True) as file:
            text = file.read().decode()
    except (OSError, UnicodeDecodeError) as wrong:
        raise ValueError(f"cannot be read: {getattr(wrong, 'strerror', None) or wrong}") from wrong
    try:
        read_policy(text, path)
    except ConfigErrors as wrong:
        raise ValueError(f"is no valid policy:\n{wrong}") from wrong
    return text


def _pools(paths: str) -> str:
    """Return the texts of files with valid node pools, joined as YAML documents."""
    files = []
    for path in paths.split(","):
        try:
            with open_input(Path(path), pipes=True) as file:
                files.append(PoolFile(path, file.read().decode()))
        except (OSError, UnicodeDecodeError) as wrong:
            raise ValueError(f"{path} cannot be read: {getattr(wrong, 'strerror', None) or wrong}") from wrong
    try:
        read_pools(files)
    except ConfigErrors as wrong:
        raise ValueError(f"is no valid set of node pools:\n{wrong}") from wrong
    return "\n---\n".join(file.text for file in files)


def _waits(text: str) -> bool:
    if text not in ("wait", "ignore"):
        raise ValueError('must be "wait" or "ignore"')
    return text == "wait"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ValueError("must be a whole number from 0 to 999999999")
    return int(text)


_DEFAULT: Final = NodeLifecycleConfig()

OPTIONS: Final[Mapping[str, Option]] = {
    "node-monitor-period": Option(
        "node_monitor_period_s",
        _positive_duration,
        show_duration(_DEFAULT.node_monitor_period_s),
        "interval between checks of the nodes",
    ),
    "node-monitor-grace-period": Option(
        "node_monitor_grace_period_s",
        _duration,
        show_duration(_DEFAULT.node_monitor_grace_period_s),
        "time without a kubelet heartbeat after which a node becomes Unknown",
    ),
    "node-startup-grace-period": Option(
        "node_startup_grace_period_s",
        _duration,
        show_duration(_DEFAULT.node_startup_grace_period_s),
        "the same for a node without any heartbeat yet",
    ),
    "node-eviction-rate": Option(
        "node_eviction_rate", _rate, f"{_DEFAULT.node_eviction_rate}", "nodes per zone that are tainted in one second"
    ),
    "secondary-node-eviction-rate": Option(
        "secondary_node_eviction_rate",
        _rate,
        f"{_DEFAULT.secondary_node_eviction_rate}",
        "the same in a large zone that is partially disrupted",
    ),
    "large-cluster-size-threshold": Option(
        "large_cluster_size_threshold",
        _count,
        f"{_DEFAULT.large_cluster_size_threshold}",
        "number of nodes above which a zone is large; in smaller partially disrupted zones no node is tainted",
    ),
    "unhealthy-zone-threshold": Option(
        "unhealthy_zone_threshold",
        _share,
        f"{_DEFAULT.unhealthy_zone_threshold}",
        "share of nodes that are not Ready from which a zone counts as partially disrupted",
    ),
    "terminated-pod-gc-threshold": Option(
        "terminated_pod_gc_threshold",
        _count,
        f"{TERMINATED_POD_THRESHOLD}",
        "maximum number of finished pods to keep; 0: unlimited",
    ),
    "cloud-provider": Option(
        "cloud_provider",
        _provider,
        "",
        "external: nodes register with the taint uninitialized, as with kubelet --cloud-provider=external; annotations "
        "kschedd.io/cloud-zone, cloud-region and cloud-instance-type state the labels that they get when it is removed",
    ),
    "cloud-init-delay": Option(
        "cloud_init_delay_s",
        _duration,
        "",
        "time from a cloud node's creation to its initialization; without it, a command initializes the node",
    ),
    "pod-behavior": Option(
        "pod_behavior",
        PodBehavior.parse,
        "",
        "behavior of new pods: finish-jobs=5s lets pods of Jobs succeed after 5 s, finish-pods=5s also pods "
        "without a controller that are not restarted, start=1s is the time to create "
        "containers, terminate=1s is the time in which pods with the default grace period end; none: pods run until "
        f"they are deleted (default {DEFAULT}, or none with --from)",
    ),
    "missing-configuration": Option(
        _WAITS,
        _waits,
        "",
        "wait: containers start when the ConfigMaps and Secrets to which they refer exist, as in a cluster; ignore: "
        "they start without them (default wait, or ignore with --from and --without controllers)",
    ),
    "descheduler": Option(
        "descheduler",
        _policy,
        "",
        "file with a DeschedulerPolicy (descheduler/v1alpha2): run a descheduler with this policy",
        is_file=True,
    ),
    "descheduling-interval": Option(
        "descheduling_interval_s", _positive_duration, "5m", "interval between two cycles of the descheduler"
    ),
    "pools": Option(
        "pools",
        _pools,
        "",
        "FILE,...: node pools (docs/POOLS.md); nodes are launched and removed as Karpenter or Cluster Autoscaler would",
        is_file=True,
    ),
}


def read_option(name: str, text: str) -> Any:
    """Parse the value of an option. Raises OptionError."""
    try:
        return OPTIONS[name].read(text)
    except ValueError as wrong:
        raise OptionError(name, text, str(wrong)) from wrong


def controller_options(given: Mapping[str, Any]) -> ControllerOptions:
    """Return the options with these values, which are keyed by the names of the flags."""
    fields = {OPTIONS[name].field: value for name, value in given.items()}
    of_lifecycle = {field.name for field in attrs.fields(NodeLifecycleConfig)}
    lifecycle = NodeLifecycleConfig(**{name: value for name, value in fields.items() if name in of_lifecycle})
    rest = {name: value for name, value in fields.items() if name not in of_lifecycle}
    waits = rest.pop(_WAITS, None)
    if waits is not None:
        rest["pod_behavior"] = attrs.evolve(rest.get("pod_behavior") or PodBehavior(), waits_for_configuration=waits)
    return ControllerOptions(lifecycle=lifecycle, **rest)
