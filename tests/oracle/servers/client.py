"""An HTTP client of a real API server for the scripts in this folder (requires httpx)."""

import ssl
import sys
from collections.abc import Mapping
from typing import Any

import httpx
import yaml

Raw = Mapping[str, Any]

MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}

# Path of the API group, and resource, by kind. A leading "!" marks a cluster-scoped kind.
_RESOURCES = {
    "CSINode": "apis/storage.k8s.io/v1 csinodes!",
    "Lease": "apis/coordination.k8s.io/v1 leases",
    "Node": "api/v1 nodes!",
    "PersistentVolume": "api/v1 persistentvolumes!",
    "PersistentVolumeClaim": "api/v1 persistentvolumeclaims",
    "Pod": "api/v1 pods",
    "ResourceSlice": "apis/resource.k8s.io/v1 resourceslices!",
}


def client_of(kubeconfig: str) -> httpx.Client:
    """Return a client for the first cluster and user of a kubeconfig written by `servers/up`."""
    with open(kubeconfig, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return httpx.Client(
        base_url=cluster["server"],
        verify=ssl.create_default_context(cafile=cluster["certificate-authority"]),
        headers={"Authorization": f"Bearer {user['token']}"},
        timeout=30,
        limits=httpx.Limits(max_keepalive_connections=64),
    )


def path(kind: str, namespace: str = "default", name: str = "") -> str:
    group, resource = _RESOURCES[kind].split()
    below = resource.removesuffix("!") if resource.endswith("!") else f"namespaces/{namespace}/{resource}"
    return f"/{group}/{below}" + (f"/{name}" if name else "")


def create(client: httpx.Client, obj: Raw) -> None:
    """Create the object unless it exists; report other failures on standard error."""
    metadata = obj["metadata"]
    answer = client.post(path(obj["kind"], metadata.get("namespace", "default")), json=obj)
    if answer.is_error and answer.status_code != httpx.codes.CONFLICT:
        print(f"{obj['kind']} {metadata['name']}: {answer.status_code} {answer.text[:300]}", file=sys.stderr)
