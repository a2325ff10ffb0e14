"""Pods for tests of pod counts."""

from typing import Any

from kschedd.api.pods import Pod


def pod(number: int, requests: dict[str, str], port: int, resized: str | None) -> Pod:
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": {"requests": requests}}
    if port:
        container["ports"] = [{"containerPort": 1, "hostPort": port, "protocol": "TCP"}]
    status: dict[str, Any] = {}
    if resized is not None:
        status["containerStatuses"] = [{"name": "c", "resources": {"requests": {**requests, "cpu": resized}}}]
    meta = {"name": f"p{number}", "namespace": "default", "uid": f"p{number}"}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": {"containers": [container]}, "status": status})
