"""Eligibility: which nodes are used so little that their removal is simulated.

Source: sigs.k8s.io/cluster-autoscaler, pkg/core/scaledown/eligibility/eligibility.go and
pkg/simulator/utilization/info.go. Devices of Dynamic Resource Allocation are not considered.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.pools.autoscaler.groups import TO_BE_DELETED, is_scale_down_disabled, node_is_ready, taint_time
from kschedd.pools.autoscaler.pods import is_daemon, is_mirror, terminates_for_long
from kschedd.pools.autoscaler.unremovable import KeptReason

GPU: Final = "nvidia.com/gpu"
_DELETION_S: Final = 5 * 60.0  # time that the provider needs to delete a node


@attrs.frozen
class UtilizationOptions:
    threshold: float = 0.5
    gpu_threshold: float = 0.5
    ignore_daemons: bool = False
    ignore_mirrors: bool = False
    unready_too: bool = True
    gpu_label: str = ""  # nodes with this label are GPU nodes


@attrs.frozen
class NodeUtilization:
    resource: str
    share: float  # requests / allocatable


@attrs.frozen
class Eligibility:
    """The nodes whose removal is simulated, in order; all other nodes with the reason; the known utilizations."""

    candidates: Sequence[str]
    kept: Mapping[str, KeptReason]
    utilization: Mapping[str, NodeUtilization]


def has_gpu(node: Node, label: str = "") -> bool:
    """Return whether the node has a GPU: the resource, or the provider's label for such nodes."""
    return bool(node.allocatable.get(GPU)) or (bool(label) and label in node.labels)


def utilization_of(
    node: Node, pods: Iterable[Pod], options: UtilizationOptions, now_s: float
) -> NodeUtilization | None:
    """Return the larger utilization of cpu and memory, or that of the GPU.

    Returns None if cpu or memory is not allocatable.
    """
    pods = list(pods)
    if has_gpu(node, options.gpu_label):
        # A GPU that is not ready counts as unused, so that its node can be removed.
        return NodeUtilization(GPU, _share(node, pods, GPU, options, now_s) or 0.0)
    cpu, memory = (_share(node, pods, resource, options, now_s) for resource in ("cpu", "memory"))
    if cpu is None or memory is None:
        return None
    return NodeUtilization("cpu", cpu) if cpu > memory else NodeUtilization("memory", memory)


def _share(node: Node, pods: Iterable[Pod], resource: str, options: UtilizationOptions, now_s: float) -> float | None:
    there = node.allocatable.get(resource, 0)
    if not there:
        return None
    used = left_out = 0
    for pod in pods:
        amount = pod.requests.get(resource, 0)
        if (options.ignore_daemons and is_daemon(pod)) or (options.ignore_mirrors and is_mirror(pod)):
            left_out += amount
        elif not terminates_for_long(pod, now_s):
            used += amount
    # as in Go, a division by zero results in infinity, or in NaN if nothing is used
    return used / (there - left_out) if there != left_out else float("inf") if used else float("nan")


def eligible(
    nodes: Iterable[Node],
    pods: Mapping[str, Sequence[Pod]],
    autoscaled: Container[str],
    options: UtilizationOptions,
    now_s: float,
    recently_kept: Container[str] = (),
) -> Eligibility:
    """Return which of the nodes are candidates for removal.

    `pods` are those of each node, `autoscaled` the nodes that belong to a group, and `recently_kept` the nodes whose
    removal failed in a recent simulation.
    """
    candidates: list[str] = []
    kept: dict[str, KeptReason] = {}
    utilization: dict[str, NodeUtilization] = {}
    for node in nodes:
        if node.name in recently_kept:
            kept[node.name] = KeptReason.RECENTLY_UNREMOVABLE
            continue
        used = utilization_of(node, pods.get(node.name, ()), options, now_s)
        why = _why_kept(node, node.name in autoscaled, used, options, now_s)
        if used is not None and why in (None, KeptReason.NOT_UNDERUTILIZED):
            utilization[node.name] = used
        if why is None:
            candidates.append(node.name)
        else:
            kept[node.name] = why
    return Eligibility(candidates, kept, utilization)


def _why_kept(
    node: Node, autoscaled: bool, used: NodeUtilization | None, options: UtilizationOptions, now_s: float
) -> KeptReason | None:
    tainted_s = taint_time(node, TO_BE_DELETED)
    if tainted_s is not None and now_s - tainted_s < _DELETION_S:
        return KeptReason.BEING_DELETED
    if is_scale_down_disabled(node):
        return KeptReason.DISABLED
    if not autoscaled:
        return KeptReason.NOT_AUTOSCALED
    if used is None:
        return KeptReason.UNEXPECTED_ERROR
    if not options.unready_too and not node_is_ready(node):
        return KeptReason.UNREADY_DISABLED
    limit = options.gpu_threshold if has_gpu(node, options.gpu_label) else options.threshold
    return KeptReason.NOT_UNDERUTILIZED if used.share > limit else None
