"""Table cells of pods, nodes and namespaces for `get`, and the functions from which all cells are built.

`kind_tables` contains the columns of all kinds.

Source: Kubernetes v1.34, pkg/printers/internalversion/printers.go.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from kschedd.api.quantity import format_milli, format_value
from kschedd.printing.columns.ages import age, seconds_of, span
from kschedd.printing.terminal.tables import NONE

Raw = Mapping[str, Any]
_NOTHING: Raw = {}

ZONE_LABEL = "topology.kubernetes.io/zone"
_OLD_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
_ROLE_PREFIX = "node-role.kubernetes.io/"


@attrs.frozen
class RowContext:
    """Data for a row, in addition to the object itself."""

    now: float
    # total requests of each node's pods: cpu in millicores, other resources in whole units (required for `-o wide` of
    # nodes)
    requested: Mapping[str, Mapping[str, int]] = attrs.field(factory=dict)


Cell = Callable[[Raw, RowContext], Any]
"""The value of a column for an object: text, or a number or boolean."""
Cells = Mapping[str, Cell]
"""Cells by column name; the names are kube-apiserver's."""


def meta(raw: Raw) -> Raw:
    return raw.get("metadata") or _NOTHING


def spec(raw: Raw) -> Raw:
    return raw.get("spec") or _NOTHING


def status(raw: Raw) -> Raw:
    return raw.get("status") or _NOTHING


def field(where: Callable[[Raw], Raw], name: str, absent: str = "") -> Cell:
    """Return a cell function that prints one field of the object unchanged, or `absent` if it is unset or empty."""

    def cell(raw: Raw, around: RowContext) -> str:
        value = where(raw).get(name)
        if value is None or value == "":
            return absent
        return str(value).lower() if isinstance(value, bool) else str(value)

    return cell


def name_cell(raw: Raw, around: RowContext) -> str:
    return str(meta(raw).get("name", ""))


def age_cell(raw: Raw, around: RowContext) -> str:
    return age(meta(raw).get("creationTimestamp"), around.now)


def joined(values: Iterable[Any], most: int = 0, absent: str = NONE) -> str:
    """Return at most `most` of the values (0: all of them), separated by commas."""
    found = [str(value) for value in values]
    more = f" + {len(found) - most} more..." if most and len(found) > most else ""
    return ",".join(found[: most or None]) + more if found else absent


# -- pods -----------------------------------------------------------------------------------------------------------


def _container_ready(container: Raw) -> bool:
    return bool(container.get("ready")) and "running" in (container.get("state") or {})


def _restartable(pod: Raw) -> frozenset[str]:
    containers = spec(pod).get("initContainers") or ()
    return frozenset(c.get("name", "") for c in containers if c.get("restartPolicy") == "Always")


def pod_ready(pod: Raw) -> str:
    """Return the number of ready containers and of all containers, including sidecars: `1/2`."""
    sidecars = _restartable(pod)
    total = len(spec(pod).get("containers") or ()) + len(sidecars)
    ready = sum(_container_ready(c) for c in status(pod).get("containerStatuses") or ())
    ready += sum(
        bool(c.get("started")) and bool(c.get("ready"))
        for c in status(pod).get("initContainerStatuses") or ()
        if c.get("name") in sidecars
    )
    return f"{ready}/{total}"


def pod_status(pod: Raw) -> str:
    """Return the value of the STATUS column: the phase, or a more specific reason."""
    word = str(status(pod).get("reason") or status(pod).get("phase") or "Unknown")
    for condition in status(pod).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            word = "SchedulingGated"
    initializing = _initializing(pod)
    if initializing:
        word = initializing
    else:
        running = False
        for container in reversed(status(pod).get("containerStatuses") or ()):
            state = container.get("state") or {}
            waiting, ended = state.get("waiting") or {}, state.get("terminated")
            if waiting.get("reason"):
                word = waiting["reason"]
            elif ended is not None and ended.get("reason"):
                word = ended["reason"]
            elif ended is not None:
                word = _exit_words(ended)
            elif container.get("ready") and "running" in state:
                running = True
        if word == "Completed" and running:
            word = "Running" if _condition(pod, "Ready") == "True" else "NotReady"
    if meta(pod).get("deletionTimestamp"):
        if status(pod).get("reason") == "NodeLost":
            return "Unknown"
        if status(pod).get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return word


def _exit_words(ended: Raw) -> str:
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _initializing(pod: Raw) -> str:
    """Return `Init:0/2` or another `Init:` status until the init containers have completed; "" after that."""
    sidecars = _restartable(pod)
    total = len(spec(pod).get("initContainers") or ())
    for place, container in enumerate(status(pod).get("initContainerStatuses") or ()):
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and not ended.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            continue
        if ended is not None:
            return "Init:" + (ended.get("reason") or _exit_words(ended))
        if waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{place}/{total}"
    return ""


def _condition(raw: Raw, kind: str) -> str:
    return next((str(c.get("status")) for c in status(raw).get("conditions") or () if c.get("type") == kind), "")


def _restarts(pod: Raw, around: RowContext) -> str:
    """Return the number of container restarts, and the time since the last one."""
    restarts, last = 0, None
    sidecars = {each.get("name") for each in spec(pod).get("initContainers") or () if each.get("restartPolicy")}
    for where in ("containerStatuses", "initContainerStatuses"):
        for each in status(pod).get(where) or ():
            if where == "initContainerStatuses" and each.get("name") not in sidecars:
                continue
            restarts += each.get("restartCount") or 0
            ended = seconds_of(((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt"))
            if ended is not None and (last is None or ended > last):
                last = ended
    return str(restarts) if not restarts or last is None else f"{restarts} ({span(around.now - last)} ago)"


def _gates(pod: Raw, around: RowContext) -> str:
    gates = spec(pod).get("readinessGates") or ()
    if not gates:
        return NONE
    return f"{sum(_condition(pod, gate.get('conditionType', '')) == 'True' for gate in gates)}/{len(gates)}"


PODS: Cells = {
    "Ready": lambda raw, around: pod_ready(raw),
    "Status": lambda raw, around: pod_status(raw),
    "Restarts": _restarts,
    "IP": field(status, "podIP", NONE),
    "Node": field(spec, "nodeName", NONE),
    "Nominated Node": field(status, "nominatedNodeName", NONE),
    "Readiness Gates": _gates,
}


# -- nodes ----------------------------------------------------------------------------------------------------------


def node_status(node: Raw) -> str:
    word = {"True": "Ready", "": "Unknown"}.get(_condition(node, "Ready"), "NotReady")
    return word + (",SchedulingDisabled" if spec(node).get("unschedulable") else "")


def node_roles(node: Raw) -> str:
    labels = meta(node).get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX) and key != _ROLE_PREFIX}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or NONE


def _zone(node: Raw, around: RowContext) -> str:
    labels = meta(node).get("labels") or {}
    return str(labels.get(ZONE_LABEL) or labels.get(_OLD_ZONE_LABEL) or NONE)


def taint_text(taint: Raw) -> str:
    """Return `key=value:Effect`, the format of kubectl and of the scheduler's messages."""
    value = taint.get("value")
    return f"{taint.get('key', '')}{'=' + value if value else ''}:{taint.get('effect', '')}"


def _taints(node: Raw, around: RowContext) -> str:
    return ",".join(taint_text(taint) for taint in spec(node).get("taints") or ()) or NONE


def _use(resource: str) -> Callable[[Raw, RowContext], str]:
    def cell(node: Raw, around: RowContext) -> str:
        used = around.requested.get(name_cell(node, around), {}).get(resource, 0)
        has = (status(node).get("allocatable") or {}).get(resource)
        return f"{amount_text(resource, used)}/{'0' if has is None else has}"

    return cell


def amount_text(resource: str, amount: int) -> str:
    """Return an amount in the scheduler's units (cpu in millicores), formatted as a quantity."""
    if resource == "cpu":
        return format_milli(amount)
    binary = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return format_value(amount, "BinarySI" if binary else "DecimalSI")


def _address(kind: str) -> Cell:
    def cell(node: Raw, around: RowContext) -> str:
        for address in status(node).get("addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address"))
        return NONE

    return cell


def _node_info(field: str) -> Cell:
    def cell(node: Raw, around: RowContext) -> str:
        return str((status(node).get("nodeInfo") or {}).get(field) or "<unknown>")

    return cell


NODES: Cells = {
    "Status": lambda raw, around: node_status(raw),
    "Roles": lambda raw, around: node_roles(raw),
    "Version": lambda raw, around: str((status(raw).get("nodeInfo") or {}).get("kubeletVersion") or ""),
    "Internal-IP": _address("InternalIP"),
    "External-IP": _address("ExternalIP"),
    "OS-Image": _node_info("osImage"),
    "Kernel-Version": _node_info("kernelVersion"),
    "Container-Runtime": _node_info("containerRuntimeVersion"),
}
NODES_WIDE: Cells = {
    "ZONE": _zone,
    "TAINTS": _taints,
    "CPU": _use("cpu"),
    "MEMORY": _use("memory"),
    "PODS": _use("pods"),
}
"""Columns of nodes for `-o wide`, instead of kubectl's addresses and versions."""


def labels_text(labels: Mapping[str, Any] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE
