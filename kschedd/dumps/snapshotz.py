"""The Cluster Autoscaler's debugging snapshot (`curl …:8085/snapshotz`): nodes, each with its pods, as JSON.

Its objects say neither kind nor apiVersion. The templates of node groups are not nodes: they are left out.
Source: kubernetes/autoscaler, cluster-autoscaler/debuggingsnapshot.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_PENDING: Final = "UnscheduledPodsCanBeScheduled"


def is_snapshot(value: Mapping[str, Any]) -> bool:
    return "kind" not in value and isinstance(value.get("NodeList"), list)


def objects(snapshot: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each object stands in the snapshot, and the object; a pod is told once."""
    told: set[str] = set()

    def pods(place: str, found: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        for number, pod in enumerate(found if isinstance(found, list) else ()):
            raw = pod.get("Pod", pod) if isinstance(pod, dict) else None  # newer ones wrap it
            meta = raw.get("metadata") if isinstance(raw, dict) else None
            uid = meta.get("uid") if isinstance(meta, dict) else None
            if isinstance(raw, dict) and uid not in told:
                if isinstance(uid, str):
                    told.add(uid)
                yield f"{place}[{number}]", {**raw, "apiVersion": "v1", "kind": "Pod"}

    for number, entry in enumerate(snapshot["NodeList"]):
        node = entry.get("Node") if isinstance(entry, dict) else None
        if isinstance(node, dict):
            yield f"NodeList[{number}].Node", {**node, "apiVersion": "v1", "kind": "Node"}
            yield from pods(f"NodeList[{number}].Pods", entry.get("Pods"))
    yield from pods(_PENDING, snapshot.get(_PENDING))
