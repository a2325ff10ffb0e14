"""What `get` shows of an object in a scenario: a few columns that do not depend on the time of day."""

from collections.abc import Callable
from typing import Final

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.store.store import Store

Cells = Callable[[Object, Store], tuple[str, ...]]


def headings(kind: str) -> tuple[str, ...]:
    return ("NAME", *_TABLES[kind][0]) if kind in _TABLES else ("NAME",)


def cells(obj: Object, store: Store) -> tuple[str, ...]:
    return _TABLES[obj.kind][1](obj, store) if obj.kind in _TABLES else ()


def _pod(obj: Object, store: Store) -> tuple[str, ...]:
    assert isinstance(obj, Pod)
    state = "Terminating" if obj.deletion_timestamp else obj.phase
    if state == "Pending" and any(c.get("reason") == "SchedulingGated" for c in obj.status.get("conditions") or ()):
        state = "SchedulingGated"
    return state, obj.node_name or "-", obj.nominated_node_name or "-"


def _node(obj: Object, store: Store) -> tuple[str, ...]:
    assert isinstance(obj, Node)
    ready = next((c.get("status") for c in obj.status.get("conditions") or () if c.get("type") == "Ready"), None)
    state = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    if obj.unschedulable:
        state += ",SchedulingDisabled"
    pods = sum(not pod.finished for pod in store.pods_on(obj.name))
    taints = (f"{t.key}={t.value}:{t.effect}" if t.value else f"{t.key}:{t.effect}" for t in obj.taints)
    return state, str(pods), ",".join(taints) or "-"


def _workload(obj: Object, store: Store) -> tuple[str, ...]:
    return (f"{obj.status.get('readyReplicas') or 0}/{obj.spec.get('replicas', 1)}",)


def _claim(obj: Object, store: Store) -> tuple[str, ...]:
    return obj.status.get("phase") or "Pending", obj.spec.get("volumeName") or "-"


def _volume(obj: Object, store: Store) -> tuple[str, ...]:
    claim = obj.spec.get("claimRef")
    terms = ((obj.spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    where = (
        f"{e.get('key')}={'|'.join(e.get('values') or ())}" for t in terms for e in t.get("matchExpressions") or ()
    )
    return obj.status.get("phase") or "-", claim["name"] if claim else "-", ",".join(where) or "-"


def _resource_claim(obj: Object, store: Store) -> tuple[str, ...]:
    allocation = obj.status.get("allocation")
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    devices = ",".join(f"{r.get('pool')}/{r.get('device')}" for r in results)
    users = ",".join(entry.get("name", "") for entry in obj.status.get("reservedFor") or ())
    return ("allocated" if allocation else "pending"), devices or "-", users or "-"


def _budget(obj: Object, store: Store) -> tuple[str, ...]:
    return (str(obj.status.get("disruptionsAllowed", "-")),)


_TABLES: Final[dict[str, tuple[tuple[str, ...], Cells]]] = {
    "Pod": (("STATUS", "NODE", "NOMINATED"), _pod),
    "Node": (("STATUS", "PODS", "TAINTS"), _node),
    "Deployment": (("READY",), _workload),
    "ReplicaSet": (("READY",), _workload),
    "StatefulSet": (("READY",), _workload),
    "PersistentVolumeClaim": (("STATUS", "VOLUME"), _claim),
    "PersistentVolume": (("STATUS", "CLAIM", "WHERE"), _volume),
    "ResourceClaim": (("STATE", "DEVICES", "USED BY"), _resource_claim),
    "PodDisruptionBudget": (("ALLOWED",), _budget),
}
