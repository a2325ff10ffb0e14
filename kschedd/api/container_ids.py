"""IDs of simulated containers and images in the format of containerd; equal inputs have equal IDs.

A kubelet writes only the image ID, because pods with equal specs share it. The container ID differs for each pod, so
`with_container_ids` computes it when a pod is read.
"""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

Raw = Mapping[str, Any]

_LISTS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def image_reference(image: str) -> str:
    """Return the image with its registry and tag."""
    registry, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in registry and ":" not in registry and registry != "localhost":
        image = f"docker.io/{image}"
    last = image.rpartition("/")[2]
    return image if ":" in last or "@" in last else f"{image}:latest"


@lru_cache(1 << 10)
def image_id(image: str) -> str:
    """Return the repository and digest of an image; if the name has no digest, compute the digest from the name."""
    reference = image_reference(image)
    name, at, digest = reference.partition("@")
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}@{digest if at else f'sha256:{_digest(reference)}'}"


def is_simulated(pod: Raw) -> bool:
    """Return whether a simulated kubelet has started a container of the pod; false for the pods of a dump."""
    entries = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(_has_own_id(entry) for entry in entries)


def _has_own_id(entry: Raw) -> bool:
    image = entry.get("imageID")
    return bool(image) and image == image_id(entry.get("image") or "")


def with_container_ids(pod: Raw) -> Raw:
    """Return the pod with the IDs of its simulated containers, or the pod itself if it has no simulated containers."""
    status = pod.get("status")
    if not status:
        return pod
    uid = (pod.get("metadata") or {}).get("uid") or ""
    changed = {field: [_with_id(entry, uid) for entry in entries] for field in _LISTS if (entries := status.get(field))}
    return {**pod, "status": {**status, **changed}} if changed else pod


def _with_id(entry: Raw, uid: str) -> Raw:
    if "containerID" in entry or not _has_own_id(entry):
        return entry
    state, restarts = entry.get("state") or {}, entry.get("restartCount") or 0
    here = _container_id(uid, entry["name"], restarts)
    whole = {**entry, "containerID": here}
    if ended := state.get("terminated"):
        whole["state"] = {"terminated": {**ended, "containerID": here}}
    if last := (entry.get("lastState") or {}).get("terminated"):
        before = here if "waiting" in state else _container_id(uid, entry["name"], restarts - 1)
        whole["lastState"] = {"terminated": {**last, "containerID": before}}
    return whole


def _container_id(uid: str, name: str, restarts: int) -> str:
    return f"containerd://{_digest(f'{uid}/{name}/{restarts}')}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
