"""Admission at the node: a kubelet's decision to admit or reject a pod bound to its node, with upstream's message.

The checks, in upstream's order, are: pressure on the node, operating system, resources, node affinity, node name, host
ports, NoExecute taints. The first failed check is reported. If a critical pod lacks only resources, it preempts other
pods (`preemption`).

Source: Kubernetes v1.34, pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/eviction/eviction_manager.go (Admit),
pkg/scheduler/eventhandlers.go (AdmissionCheck), pkg/kubelet/types/pod_update.go (IsCriticalPod).
Units: CPU in millicores, other resources in whole units.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.node_fit import HostPort, node_matches, ports_conflict
from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.qos import qos_of_spec
from kschedd.api.selecting.resource_names import is_scalar
from kschedd.api.selecting.selectors import SelectorError
from kschedd.api.selecting.terms import NO_EXECUTE, NO_SCHEDULE, Taint
from kschedd.devices.extended_resources import may_be_devices

CRITICAL_PRIORITY: Final = 2_000_000_000
PRESSURE_CONDITIONS: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")
_MEMORY_TAINT: Final = Taint("node.kubernetes.io/memory-pressure", "", NO_SCHEDULE)
_CONFIG_SOURCE, _CONFIG_MIRROR = "kubernetes.io/config.source", "kubernetes.io/config.mirror"
_OS_LABEL: Final = "kubernetes.io/os"
_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")


@attrs.frozen
class Insufficient:
    """A resource that is insufficient on the node."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def lacking(self) -> int:
        return self.requested - (self.capacity - self.used)

    @property
    def reason(self) -> str:
        return f"OutOf{self.resource}"

    def __str__(self) -> str:
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, used: {self.used}, "
            f"capacity: {self.capacity}"
        )


@attrs.frozen
class PredicateFailure:
    """A scheduling rule that the pod violates on this node."""

    reason: str  # the plugin's name
    why: str

    def __str__(self) -> str:
        return f"Predicate {self.reason} failed: {self.why}"


@attrs.frozen
class Refusal:
    reason: str
    message: str


@attrs.define(eq=False)
class NodeUsage:
    """Requests of the pods that a kubelet has admitted to its node."""

    requested: dict[str, int] = attrs.field(factory=dict)
    pods: int = 0
    ports: dict[HostPort, int] = attrs.field(factory=dict)  # number of pods by port

    def add(self, requests: Mapping[str, int], ports: Collection[HostPort], sign: int = 1) -> None:
        """Add a pod to the counts, or remove it if `sign` is -1."""
        self.pods += sign
        for name, amount in requests.items():
            self.requested[name] = self.requested.get(name, 0) + sign * amount
        for port in ports:
            self.ports[port] = self.ports.get(port, 0) + sign
            if not self.ports[port]:
                del self.ports[port]


def is_static(pod: Pod) -> bool:
    source = pod.annotations.get(_CONFIG_SOURCE)
    return source is not None and source != "api"


def is_critical(pod: Pod) -> bool:
    return is_static(pod) or _CONFIG_MIRROR in pod.annotations or pod.priority >= CRITICAL_PRIORITY


def failures(pod: Pod, node: Node, usage: NodeUsage) -> list[Insufficient | PredicateFailure]:
    """Return all reasons to reject the pod on this node; `usage` is the usage of the node's admitted pods."""
    found: list[Insufficient | PredicateFailure] = list(_insufficient(pod, node, usage))
    try:
        matches = node_matches(pod.pod_spec, node)
    except SelectorError:
        matches = False
    if not matches:
        found.append(PredicateFailure("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"))
    if pod.node_name and pod.node_name != node.name:
        found.append(PredicateFailure("NodeName", "node(s) didn't match the requested node name"))
    ports = pod.pod_spec.host_ports
    if ports and ports_conflict(ports, usage.ports):
        found.append(PredicateFailure("NodePorts", "node(s) didn't have free ports for the requested pod ports"))
    if node.taints and not is_static(pod):
        kept_off = [taint for taint in node.taints if taint.effect == NO_EXECUTE]
        if any(not any(t.tolerates(taint) for t in pod.pod_spec.tolerations) for taint in kept_off):
            found.append(PredicateFailure("TaintToleration", "node(s) had taints that the pod didn't tolerate"))
    return found


def _insufficient(pod: Pod, node: Node, usage: NodeUsage) -> list[Insufficient]:
    has = node.allocatable
    found = []
    most = has.get("pods", 0)
    if usage.pods + 1 > most:
        found.append(Insufficient("pods", 1, usage.pods, most))
    requests, requested = pod.requests, usage.requested
    if all(wanted <= has.get(name, 0) - requested.get(name, 0) for name, wanted in requests.items()):
        return found  # the usual case
    scalars = sorted(name for name in requests if name not in _PLAIN and is_scalar(name))
    for name in (*_PLAIN, *scalars):
        wanted = requests.get(name, 0)
        # The kubelet ignores resources that are not on the node, such as cluster-wide resources or those of a
        # DeviceClass.
        if not wanted or (may_be_devices(name) and name not in has):
            continue
        used, capacity = usage.requested.get(name, 0), has.get(name, 0)
        if wanted > capacity - used:
            found.append(Insufficient(name, wanted, used, capacity))
    return found


def pressures_of(node: Node) -> list[str]:
    """Return the node's pressure conditions that are True, set by the kubelet or by another client."""
    there = {
        entry["type"]
        for entry in node.status.get("conditions") or ()
        if entry.get("status") == "True" and entry.get("type") in PRESSURE_CONDITIONS
    }
    return [name for name in PRESSURE_CONDITIONS if name in there] if there else []


def refused_by_system(pod: Pod, node: Node) -> Refusal | None:
    """Return the rejection that preemption cannot avoid: pressure on the node, or another operating system."""
    pressures = pressures_of(node)
    if pressures and not is_critical(pod) and not _bears(pod, pressures):
        return Refusal("Evicted", f"The node had condition: [{' '.join(pressures)}]. ")
    system = node.labels.get(_OS_LABEL, "linux")
    if pod.labels.get(_OS_LABEL, system) != system:
        why = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
        return Refusal("PodOSSelectorNodeLabelDoesNotMatch", why)
    wanted = (pod.pod_spec.raw.get("os") or {}).get("name") or system
    if wanted != system:
        return Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def _bears(pod: Pod, pressures: Sequence[str]) -> bool:
    """Return whether the pod is admitted despite these pressures.

    Under memory pressure alone, a pod is admitted if it is not BestEffort or tolerates the taint. Under any other
    pressure, no pod is admitted.
    """
    if list(pressures) != ["MemoryPressure"]:
        return False
    if qos_of_spec(pod.pod_spec.raw) != "BestEffort":
        return True
    return any(toleration.tolerates(_MEMORY_TAINT) for toleration in pod.pod_spec.tolerations)


def refusal_of(found: Sequence[Insufficient | PredicateFailure]) -> Refusal:
    """Return the rejection of the pod for its first failure."""
    return Refusal(found[0].reason, str(found[0]))
