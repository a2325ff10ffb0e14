"""Manifests of pods and nodes from the rows of a trace. Equal requests share one spec.

CPU in cores, memory in GiB. A GPU is 1,000 units of the resource `alibabacloud.com/gpu-milli`, as in the lists of 2023.
"""

from functools import lru_cache
from typing import Any, Final

import attrs

from kschedd.api.selecting.names import label_value
from kschedd.simulation.workloads.trace import GPU_MILLI, GPU_MODEL, NAMESPACE, TracePod, priority_name

Raw = dict[str, Any]

_UNLIMITED: Final = frozenset(("cpu", "memory", "ephemeral-storage"))  # all other resources also require a limit


@attrs.frozen
class PodShape:
    """Requests, priority, and required node labels of a pod. A trace has many pods with few different shapes.

    `gpu_models`: the node must have one of these models; empty: any model.
    """

    requests: tuple[tuple[str, str], ...]
    priority: int = 0
    node_labels: tuple[tuple[str, str], ...] = ()
    gpu_models: tuple[str, ...] = ()


def requests(cpu: float = 0, memory: float = 0, gpus: float = 0, **more: str) -> tuple[tuple[str, str], ...]:
    """Return the nonzero requests as quantities."""
    found = {"cpu": f"{round(cpu * 1000)}m" if cpu else "", "memory": f"{round(memory * 1024)}Mi" if memory else ""}
    found |= {GPU_MILLI: str(round(gpus * 1000)) if gpus else "", **more}
    return tuple((name, amount) for name, amount in found.items() if amount)


def made_pod(
    name: str,
    shape: PodShape,
    labels: dict[str, str],
    created_s: float,
    deleted_s: float | None,
    scheduled_s: float | None = None,
) -> TracePod:
    """Return a pod. Omit labels with values that Kubernetes does not accept."""
    kept = {key: value for key, value in labels.items() if value and not any(label_value(value))}
    meta = {"name": name, "namespace": NAMESPACE, "labels": kept}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec_of(shape)}
    phase = "Running" if deleted_s is None else "Succeeded"
    return TracePod(f"{NAMESPACE}/{name}", raw, created_s, deleted_s, scheduled_s, phase)


@lru_cache(65536)
def spec_of(shape: PodShape) -> Raw:
    """Return the spec that all pods of this shape share; this is safe because manifests are never modified."""
    resources: Raw = {"requests": dict(shape.requests)}
    if limits := {name: amount for name, amount in shape.requests if name not in _UNLIMITED}:
        resources["limits"] = limits
    spec: Raw = {
        "containers": [{"name": "task", "image": "registry.k8s.io/pause:3.10", "resources": resources}],
        "terminationGracePeriodSeconds": 0,
    }
    if shape.priority:
        spec["priorityClassName"] = priority_name(shape.priority)
    if shape.node_labels:
        spec["nodeSelector"] = dict(shape.node_labels)
    if shape.gpu_models:
        term = {"matchExpressions": [{"key": GPU_MODEL, "operator": "In", "values": list(shape.gpu_models)}]}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        }
    return spec


def made_node(name: str, has: tuple[tuple[str, str], ...], labels: dict[str, str]) -> Raw:
    """Return a ready node."""
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    return {**_node_of(has), "metadata": meta}


@lru_cache(1024)
def _node_of(has: tuple[tuple[str, str], ...]) -> Raw:
    """Return a node without metadata; nodes with equal resources share parts of it."""
    resources = {"pods": "110", **dict(has)}
    status = {"capacity": resources, "allocatable": resources, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {}, "spec": {}, "status": status}
