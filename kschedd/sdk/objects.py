"""Builders of node and pod manifests in one line: a field that is not given has a default.

node("n1", cpu="4", labels={"disk": "ssd"})
pod("a", cpu="500m", labels={"team": "x"}, spec={"priority": 10})
"""

from collections.abc import Mapping, Sequence
from typing import Any

Raw = dict[str, Any]


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    resources: Mapping[str, str] | None = None,
) -> Raw:
    """Return a node that is ready. `resources`: its other resources, such as {"nvidia.com/gpu": "8"}."""
    has = {"cpu": cpu, "memory": memory, "pods": str(pods), **(resources or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {"capacity": has, "allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(
    name: str,
    *,
    cpu: str = "100m",
    memory: str = "64Mi",
    namespace: str = "default",
    node_name: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> Raw:
    """Return a pod with one container. `resources`: its other requests; `spec`: further fields of its spec."""
    extended = dict(resources or {})
    requests = {"cpu": cpu, "memory": memory, **extended}
    wanted = {"requests": requests, **({"limits": extended} if extended else {})}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": wanted}
    placed = {"nodeName": node_name} if node_name else {}
    meta = {"name": name, "namespace": namespace, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], **placed, **(spec or {})},
    }
