"""Manifests for the tests of the store and of the controllers."""

from typing import Any


def pod(name: str = "web", *, namespace: str = "default", cpu: str | None = "100m", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    container = {"name": "app", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "web"}},
        "spec": {"containers": [container], **spec},
    }


def node(name: str = "node-1", *, conditions: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    status: dict[str, Any] = {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}}
    if conditions is not None:
        status["conditions"] = [{"type": type_, "status": value} for type_, value in conditions.items()]
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}


def workload(kind: str, name: str = "web", *, replicas: int = 3, image: str = "web:1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": image}]},
            },
            **spec,
        },
    }


def config_map(name: str, *, namespace: str = "default", **data: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


class Clock:
    """A clock that changes only when it is advanced."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
