"""Objects as an API server has kept them."""

from typing import Any

Raw = dict[str, Any]
AT = "2026-11-20T10:00:00Z"


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def kept(kind: str, name: str, number: int, *, api: str = "v1", namespace: str = "", **fields: Any) -> Raw:
    """Return an object with the uid and the version of that number."""
    meta: Raw = {"name": name, "uid": uid(number), "resourceVersion": str(number), "creationTimestamp": AT}
    if namespace:
        meta["namespace"] = namespace
    meta.update(fields.pop("metadata", {}))
    return {"apiVersion": api, "kind": kind, "metadata": meta, **fields}


def node(name: str, number: int, cpu: str = "4", ready: str = "True") -> Raw:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": AT, "lastHeartbeatTime": AT}
    status = {"capacity": room, "allocatable": room, "conditions": [condition]}
    return kept("Node", name, number, metadata={"labels": {"kubernetes.io/hostname": name}}, status=status)


def pod(name: str, number: int, node_name: str = "", cpu: str = "1", **more: Any) -> Raw:
    """`owner`: (kind, name, number); `token`: the name of its token volume; `spec`: further fields."""
    token = more.get("token", f"kube-api-access-{number:05d}")
    container = {
        "name": "c",
        "image": "registry.example/c:1",
        "resources": {"requests": {"cpu": cpu}},
        "volumeMounts": [{"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
    }
    sources = [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]
    spec = {
        "serviceAccountName": "default",
        "containers": [container],
        "volumes": [{"name": token, "projected": {"sources": sources}}],
    }
    given = more.get("spec", {})
    spec.update({**given, "volumes": [*spec["volumes"], *given.get("volumes", ())]})
    meta: Raw = {"labels": more.get("labels", {"app": "web"})}
    if node_name:
        spec["nodeName"] = node_name
    if owner := more.get("owner"):
        reference = {"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "uid": uid(owner[2])}
        meta["ownerReferences"] = [{**reference, "controller": True}]
    meta.update(more.get("metadata", {}))
    phase = more.get("phase", "Running" if node_name else "Pending")
    namespace = more.get("namespace", "default")
    return kept("Pod", name, number, namespace=namespace, metadata=meta, spec=spec, status={"phase": phase})
