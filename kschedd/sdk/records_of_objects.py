"""Records of pods and nodes, made from their manifests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import ZONE_LABEL, Node
from kschedd.api.pods import Pod
from kschedd.sdk.records import Records
from kschedd.simulation.placements import workload_of

Raw = Mapping[str, Any]

_MILLI: Final = 1000
_CPU, _MEMORY, _PODS, _STORAGE = "cpu", "memory", "pods", "ephemeral-storage"


@attrs.frozen(kw_only=True)
class PodRecord:
    """One pod.

    * `cpu`, `memory`: the pod's requests, in cores and in bytes; `requests`: its requests for all other resources, by
      name.
    * `node`: the name of the pod's node; None without a node.
    * `zone`: the node's label topology.kubernetes.io/zone; "" without the label, None without a node.
    * `priority`: the priority in the pod's spec; 0 without one.
    * `phase`: Pending, Running, Succeeded or Failed, as the kubelet reports it.
    * `owner`: kind/name of the controller that created the pod; None without one.
    * `workload`: like `owner`, but for a ReplicaSet of a Deployment it is the Deployment.
    """

    namespace: str
    name: str
    node: str | None
    zone: str | None
    phase: str
    priority: int
    cpu: float
    memory: int
    requests: Mapping[str, int]
    owner: str | None
    workload: str | None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


@attrs.frozen(kw_only=True)
class NodeRecord:
    """One node.

    * `zone`: the node's label topology.kubernetes.io/zone; "" without the label.
    * `unschedulable`: True if it is cordoned.
    * `taints`: the taints as key=value:effect.
    * `pods`: the number of unfinished pods on the node; `pods_allocatable`: the maximum number of pods.
    * `cpu_requested`, `cpu_allocatable`: in cores; `memory_requested`, `memory_allocatable`: in bytes.
    * `requested`, `allocatable`: the amounts of all other resources, by name.
    * `cpu_used`, `memory_used`: the requested share, from 0 to 1.

    The requested amounts are sums over the pods on the node.
    """

    name: str
    zone: str
    unschedulable: bool
    taints: tuple[str, ...]
    pods: int
    pods_allocatable: int
    cpu_requested: float
    cpu_allocatable: float
    memory_requested: int
    memory_allocatable: int
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]

    @property
    def cpu_used(self) -> float:
        """The requested share of the node's CPU; 0 if the node has no CPU."""
        return used_cpu([self])

    @property
    def memory_used(self) -> float:
        """The requested share of the node's memory; 0 if the node has no memory."""
        return used_memory([self])


@attrs.frozen(kw_only=True)
class PendingPod:
    """A pod without a node.

    * `message`: kube-scheduler's message in the PodScheduled condition.
    * `place`: the sub-queue that contains the pod, such as active, backoff, unschedulable, gated or in_flight; "" for a
      pod of another scheduler.
    * `attempts`: the number of scheduling attempts so far.
    * `plugins`: the plugins that rejected the pod in its last attempt.
    """

    namespace: str
    name: str
    message: str
    place: str
    attempts: int
    plugins: tuple[str, ...]

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def used_cpu(nodes: Iterable[NodeRecord]) -> float:
    """Return the requested share of the CPU of all these nodes; 0 if they have no CPU."""
    return _share([(node.cpu_requested, node.cpu_allocatable) for node in nodes])


def used_memory(nodes: Iterable[NodeRecord]) -> float:
    """Return the requested share of the memory of all these nodes; 0 if they have no memory."""
    return _share([(node.memory_requested, node.memory_allocatable) for node in nodes])


def _share(amounts: Sequence[tuple[float, float]]) -> float:
    total = sum(allocatable for _, allocatable in amounts)
    return sum(requested for requested, _ in amounts) / total if total else 0.0


def pod_records(pods: Iterable[Raw], nodes: Iterable[Raw]) -> Records[PodRecord]:
    """Return a record for each pod, in the given order. `nodes`: the nodes on which the pods may run."""
    zones = {raw["metadata"]["name"]: (raw["metadata"].get("labels") or {}).get(ZONE_LABEL, "") for raw in nodes}
    return Records(PodRecord, [_pod_record(Pod.from_raw(dict(raw)), zones) for raw in pods])


def node_records(nodes: Iterable[Raw], pods: Iterable[Raw]) -> Records[NodeRecord]:
    """Return a record for each node, in the given order, with the sums over the pods on the node."""
    on_node: dict[str, list[Pod]] = {}
    for raw in pods:
        pod = Pod.from_raw(dict(raw))
        if pod.node_name and not pod.finished:
            on_node.setdefault(pod.node_name, []).append(pod)
    return Records(NodeRecord, [_node_record(Node.from_raw(dict(raw)), on_node) for raw in nodes])


def _pod_record(pod: Pod, zones: Mapping[str, str]) -> PodRecord:
    requests = pod.requests
    owners = [owner for owner in pod.raw["metadata"].get("ownerReferences") or () if owner.get("controller")]
    return PodRecord(
        namespace=pod.namespace,
        name=pod.name,
        node=pod.node_name or None,
        zone=zones.get(pod.node_name, "") if pod.node_name else None,
        phase=str(pod.status.get("phase") or "Pending"),
        priority=pod.priority,
        cpu=requests.get(_CPU, 0) / _MILLI,
        memory=requests.get(_MEMORY, 0),
        requests=_others(requests),
        owner=f"{owners[0]['kind']}/{owners[0]['name']}" if owners else None,
        workload=workload_of(pod),
    )


def _node_record(node: Node, on_node: Mapping[str, list[Pod]]) -> NodeRecord:
    pods = on_node.get(node.name, [])
    requested: dict[str, int] = {}
    for pod in pods:
        for resource, amount in pod.requests.items():
            requested[resource] = requested.get(resource, 0) + amount
    has = node.allocatable
    return NodeRecord(
        name=node.name,
        zone=node.labels.get(ZONE_LABEL, ""),
        unschedulable=node.unschedulable,
        taints=tuple(f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints),
        pods=len(pods),
        pods_allocatable=has.get(_PODS, 0),
        cpu_requested=requested.get(_CPU, 0) / _MILLI,
        cpu_allocatable=has.get(_CPU, 0) / _MILLI,
        memory_requested=requested.get(_MEMORY, 0),
        memory_allocatable=has.get(_MEMORY, 0),
        requested=_others(requested),
        allocatable=_others(has),
    )


def _others(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if name not in (_CPU, _MEMORY, _PODS, _STORAGE)}
