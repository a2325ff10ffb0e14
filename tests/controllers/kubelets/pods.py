"""Pods and nodes for the tests of the kubelets' rules for one node."""

from typing import Any

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod

MIB = 1024 * 1024


def mib(amount: float) -> int:
    return int(amount * MIB)


def pod(
    name: str = "p",
    requests: dict[str, str] | None = None,
    limits: dict[str, str] | None = None,
    *,
    namespace: str = "default",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    ports: tuple[int, ...] = (),
    phase: str = "Running",
    **spec: Any,
) -> Pod:
    container: dict[str, Any] = {"name": "app", "image": "app:1", "resources": {}}
    if requests:
        container["resources"]["requests"] = requests
    if limits:
        container["resources"]["limits"] = limits
    if ports:
        container["ports"] = [{"hostPort": port, "protocol": "TCP"} for port in ports]
    return Pod.from_raw(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"uid-{name}",
                "annotations": annotations or {},
                "labels": labels or {},
            },
            "spec": {"containers": [container], **spec},
            "status": {"phase": phase},
        }
    )


def node(
    name: str = "machine1",
    *,
    taints: list[dict[str, str]] | None = None,
    labels: dict[str, str] | None = None,
    pressures: tuple[str, ...] = (),
    **allocatable: str,
) -> Node:
    has = {key.replace("_", "-"): amount for key, amount in allocatable.items()}
    has = {"cpu": "10m", "memory": "20", "pods": "32"} | has
    conditions = [{"type": name, "status": "True"} for name in pressures]
    return Node.from_raw(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"taints": taints or []},
            "status": {"allocatable": has, "capacity": has, "conditions": conditions},
        }
    )
