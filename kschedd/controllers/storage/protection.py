"""Storage protection: deletion of claims, volumes and attribute classes is delayed while they are in use.

Kube-apiserver adds a finalizer to each claim, volume and attribute class. The protection controller removes the
finalizer from a deleted object when the object is no longer in use. A claim is in use while a pod with a node names it,
whatever the pod's state. A volume is in use while it is bound. A VolumeAttributesClass is in use while a claim or a
volume names it, or while it is the current or the target class of a claim.

Owns nothing. A rejected write needs no handling; the conflicting change triggers the next reconcile. Source: Kubernetes
v1.34, pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.running.controller import View
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Write, patch_of

CLAIM, VOLUME, ATTRIBUTES = "PersistentVolumeClaim", "PersistentVolume", "VolumeAttributesClass"
FINALIZER: Final = {
    CLAIM: "kubernetes.io/pvc-protection",
    VOLUME: "kubernetes.io/pv-protection",
    ATTRIBUTES: "kubernetes.io/vac-protection",
}


class StorageProtection:
    name: Final = "storage-protection"
    kinds: Final = frozenset((CLAIM, VOLUME, ATTRIBUTES, "Pod"))
    next_deadline: Final[float | None] = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def concerns(self, event: WatchEvent) -> bool:
        if event.new.kind == "Pod":
            return event.type == DELETED
        return (event.type != DELETED and event.new.deleting) or bool(_classes_left(event))

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        found: dict[str, dict[tuple[str, str], None]] = {CLAIM: {}, VOLUME: {}, ATTRIBUTES: {}}
        for event in events:
            obj = event.new
            found[ATTRIBUTES].update((("", name), None) for name in sorted(_classes_left(event)))
            if isinstance(obj, Pod):
                if event.type == DELETED:
                    found[CLAIM].update(((obj.namespace, name), None) for name in claims_of(obj))
            elif event.type != DELETED and obj.deleting:
                found[obj.kind][obj.namespace, obj.name] = None
        writes: list[Write] = []
        for kind, keys in found.items():
            writes += self.faults.each(kind, keys, partial(_release, kind, view), now)
        return writes

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        return []


def claims_of(pod: Pod) -> Iterator[str]:
    """Yield the names of the claims that the pod's volumes use."""
    for volume in pod.pod_spec.raw.get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield claim.get("claimName") or ""
        elif "ephemeral" in volume:
            yield f"{pod.name}-{volume.get('name') or ''}"


def _classes_of(obj: Object | None) -> set[str]:
    """Return the VolumeAttributesClasses that a claim or volume uses."""
    if obj is None or obj.kind not in (CLAIM, VOLUME):
        return set()
    status = obj.status if obj.kind == CLAIM else {}
    wanted = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    used = (obj.spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), wanted)
    return {name for name in used if name}


def _classes_left(event: WatchEvent) -> set[str]:
    """Return the VolumeAttributesClasses that a claim or volume no longer uses."""
    if event.type == DELETED:
        return _classes_of(event.new)
    return _classes_of(event.old) - _classes_of(event.new)


def _release(kind: str, view: View, namespace: str, name: str, now: float) -> list[Write]:
    obj = view.find(kind, namespace, name)
    finalizers = [] if obj is None else obj.metadata.get("finalizers") or []
    if obj is None or not obj.deleting or FINALIZER[kind] not in finalizers or _needed(obj, view):
        return []
    left = [each for each in finalizers if each != FINALIZER[kind]]
    return [patch_of(obj, {"metadata": {"finalizers": left or None}}, exactly=True)]


def _needed(obj: Object, view: View) -> bool:
    if obj.kind == VOLUME:
        return bool(obj.status.get("phase") == "Bound")
    if obj.kind == ATTRIBUTES:
        return any(obj.name in _classes_of(each) for kind in (CLAIM, VOLUME) for each in view.list(kind))
    pods = view.list("Pod", obj.namespace)
    return any(isinstance(pod, Pod) and pod.node_name and obj.name in claims_of(pod) for pod in pods)
