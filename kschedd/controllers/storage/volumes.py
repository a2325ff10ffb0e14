"""The PersistentVolume controller: binds claims to volumes, and reclaims volumes after their claim was deleted.

A claim is bound to its pre-bound volume, or else to the smallest matching volume of its class. A WaitForFirstConsumer
claim is bound only to a volume that the scheduler has chosen. If no volume matches and the class has a provisioner, an
annotation passes the claim to the provisioner (in the embedded cluster, `kschedd.controllers.storage.provisioner`).
When its claim is deleted, a volume becomes Released, and is then deleted, retained or recycled according to its reclaim
policy. When its volume is deleted, a claim becomes Lost.

A rejected write needs no handling; the conflicting change triggers the next reconcile. Source:
Kubernetes v1.34, controller/volume/persistentvolume/pv_controller.go, index.go.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.controllers.object_events import object_event
from kschedd.controllers.running.controller import View
from kschedd.controllers.storage.volume_index import VolumeIndex
from kschedd.object_faults import FaultLedger
from kschedd.storage.claims import (
    BETA_STORAGE_PROVISIONER,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    FILESYSTEM,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    asks_for_no_class,
    class_of,
    default_class,
    is_default_class,
    requested,
    volume_of,
)
from kschedd.storage.matching import candidates
from kschedd.storage.provisioning import NO_PROVISIONER, waits_for_consumer
from kschedd.storage.volumes import AVAILABLE, StorageError, Volume, bound_to
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import ADDED, DELETED, WatchEvent
from kschedd.store.writes import Delete, Write, patch_of, status_of

COMPONENT: Final = "persistentvolume-controller"
BOUND, PENDING, LOST, RELEASED, FAILED = "Bound", "Pending", "Lost", "Released", "Failed"
CLAIM, VOLUME, CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass"


class VolumeController:
    name: Final = "volumes"
    kinds: Final = frozenset((CLAIM, VOLUME, CLASS))

    def __init__(self) -> None:
        self._index = VolumeIndex()
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)
        self._reported: dict[str, str] = {}  # claim uid -> message of its last Event

    @property
    def next_deadline(self) -> float | None:
        return None

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        claims: dict[str, None] = {}
        volumes: dict[str, None] = {}
        for event in events:
            self._notice(event, claims, volumes)
        writes = self.faults.each(VOLUME, [("", name) for name in volumes], partial(self._look_at_volume, view), now)
        taken: set[str] = set()
        keys = [(namespace, name) for namespace, _, name in (key.partition("/") for key in claims)]
        return writes + self.faults.each(CLAIM, keys, partial(self._look_at_claim, view, taken), now)

    def _look_at_volume(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        obj = view.find(VOLUME, "", name)
        return [] if obj is None else self._sync_volume(Volume.of(obj), view)

    def _look_at_claim(self, view: View, taken: set[str], namespace: str, name: str, now: float) -> list[Write]:
        claim = view.find(CLAIM, namespace, name)
        return [] if claim is None else self._sync_claim(claim, view, taken, now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        return []

    def _notice(self, event: WatchEvent, claims: dict[str, None], volumes: dict[str, None]) -> None:
        """Update the index with an event, and add the affected claims and volumes to the objects to reconcile."""
        obj, index = event.new, self._index
        if obj.kind == CLAIM:
            if event.type == DELETED:
                index.forget_claim(obj)
                self._reported.pop(obj.uid, None)
            else:
                index.put_claim(obj)
                claims[obj.key] = None
            volumes.update(dict.fromkeys(index.reserved_by(obj.key)))
        elif obj.kind == VOLUME:
            claims.update(dict.fromkeys(index.concerned(obj)))
            if event.type == DELETED:
                index.forget_volume(obj)
            else:
                index.put_volume(obj)
                volumes[obj.name] = None
        else:
            if event.type == ADDED:
                claims.update(dict.fromkeys(index.waiting_for_class(obj.name)))
            if event.type != DELETED and is_default_class(obj):
                claims.update(dict.fromkeys(index.waiting_for_class("")))

    # --- claims ------------------------------------------------------------------------------------------------

    def _sync_claim(self, claim: Object, view: View, taken: set[str], now: float) -> list[Write]:
        if BIND_COMPLETED in claim.annotations:
            return self._sync_bound(claim, view, now)
        if claim.deleting:
            return []
        name = volume_of(claim)
        if not name:
            return self._sync_unbound(claim, view, taken, now)
        obj = view.find(VOLUME, "", name)
        if obj is None:
            return _phase(claim, PENDING)
        volume = Volume.of(obj)
        if volume.reserved_for(claim):
            return _bind(obj, claim)
        if volume.claim_ref is not None:
            return _phase(claim, PENDING)
        if why := _unsuitable(volume, claim):
            message = f'Cannot bind to requested volume "{name}": {why}'
            return [*self._event(claim, "VolumeMismatch", message, now, warning=True), *_phase(claim, PENDING)]
        return _bind(obj, claim)

    def _sync_unbound(self, claim: Object, view: View, taken: set[str], now: float) -> list[Write]:
        classes = {obj.name: obj for obj in view.list(CLASS)}
        try:
            delayed = waits_for_consumer(claim, classes)
            found = candidates(claim, self._index.of_class(class_of(claim), claim.key))
        except StorageError as fault:
            return self._event(claim, "FailedBinding", fault.why, now, warning=True)
        suitable = [*found.reserved, *(() if delayed else sorted(found.free, key=_size))]
        for volume in suitable:
            obj = view.find(VOLUME, "", volume.name)
            if volume.name not in taken and obj is not None and obj.resource_version == volume.obj.resource_version:
                taken.add(volume.name)
                return _bind(obj, claim)
        if delayed and SELECTED_NODE not in claim.annotations:
            why = "waiting for first consumer to be created before binding"
            return [*self._event(claim, "WaitForFirstConsumer", why, now), *_phase(claim, PENDING)]
        storage_class = classes.get(class_of(claim))
        if not class_of(claim):
            default = default_class(classes.values()) if asks_for_no_class(claim) else None
            if default is not None:
                return [patch_of(claim, {"spec": {"storageClassName": default.name}})]
            why = "no persistent volumes available for this claim and no storage class is set"
            return [*self._event(claim, "FailedBinding", why, now), *_phase(claim, PENDING)]
        if storage_class is None:
            why = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            return [*self._event(claim, "ProvisioningFailed", why, now, warning=True), *_phase(claim, PENDING)]
        return [*self._hand_over(claim, storage_class, now), *_phase(claim, PENDING)]

    def _hand_over(self, claim: Object, storage_class: Object, now: float) -> list[Write]:
        """Pass the claim to its class' external provisioner."""
        provisioner = storage_class.raw.get("provisioner") or ""
        if provisioner == NO_PROVISIONER:
            why = "no volume plugin matched name: kubernetes.io/no-provisioner"
            return self._event(claim, "ProvisioningFailed", why, now, warning=True)
        writes: list[Write] = []
        if claim.annotations.get(STORAGE_PROVISIONER) != provisioner:
            named = {STORAGE_PROVISIONER: provisioner, BETA_STORAGE_PROVISIONER: provisioner}
            writes.append(patch_of(claim, {"metadata": {"annotations": named}}, exactly=True))
        why = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        return [*writes, *self._event(claim, "ExternalProvisioning", why, now)]

    def _sync_bound(self, claim: Object, view: View, now: float) -> list[Write]:
        name = volume_of(claim)
        obj = view.find(VOLUME, "", name) if name else None
        if obj is not None:
            ref = obj.spec.get("claimRef")
            if ref is None or ref.get("uid") == claim.uid:
                return [] if claim.deleting and ref is None else _bind(obj, claim)
        if claim.status.get("phase") == LOST:
            return []
        if obj is not None:
            reason, why = "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly"
        else:
            what = "reference to PersistentVolume" if not name else "its PersistentVolume"
            reason, why = "ClaimLost", f"Bound claim has lost {what}. Data on the volume is lost!"
        return [*self._event(claim, reason, why, now, warning=True), *_phase(claim, LOST)]

    def _event(self, claim: Object, reason: str, why: str, now: float, *, warning: bool = False) -> list[Write]:
        if self._reported.get(claim.uid) == why:
            return []
        self._reported[claim.uid] = why
        return [object_event(claim, reason, why, COMPONENT, now, warning=warning)]

    # --- volumes -----------------------------------------------------------------------------------------------

    def _sync_volume(self, volume: Volume, view: View) -> list[Write]:
        ref = volume.claim_ref
        claim = None if ref is None or not ref.uid else view.find(CLAIM, ref.namespace, ref.name)
        if volume.deleting:
            # Only a Bound volume is protected from deletion; without its claim, its deletion completes.
            gone = ref is not None and ref.uid and (claim is None or claim.uid != ref.uid)
            return _volume_phase(volume, RELEASED) if gone and volume.phase == BOUND else []
        if ref is None or not ref.uid:
            return _volume_phase(volume, AVAILABLE)
        if claim is None or claim.uid != ref.uid:
            return self._reclaim(volume)
        name = volume_of(claim)
        if name == volume.name:
            return _volume_phase(volume, BOUND)
        if not name:
            return []  # the reconcile of the claim completes the binding
        if PROVISIONED_BY in volume.obj.annotations and _policy(volume) == "Delete":
            return self._reclaim(volume)
        return _unbind(volume)

    def _reclaim(self, volume: Volume) -> list[Write]:
        writes = [] if volume.phase == FAILED else _volume_phase(volume, RELEASED)
        if _policy(volume) == "Delete":
            return [*writes, Delete(VOLUME, "", volume.name, volume.obj.uid)]
        if _policy(volume) == "Recycle":
            return [*writes, patch_of(volume.obj, {"spec": {"claimRef": None}})]
        return writes


def _size(volume: Volume) -> tuple[int, int]:
    """Return the sort key of matching volumes: number of access modes, then size."""
    return len(volume.access_modes), volume.capacity


def _policy(volume: Volume) -> str:
    return volume.obj.spec.get("persistentVolumeReclaimPolicy") or "Retain"


def _unsuitable(volume: Volume, claim: Object) -> str:
    """Return why the volume that the claim names does not match the claim, or "" if it matches."""
    spec = claim.spec
    if volume.capacity < requested(claim):
        return "requested PV is too small"
    if volume.storage_class != class_of(claim):
        return "storageClassName does not match"
    if volume.attributes_class != (spec.get("volumeAttributesClassName") or ""):
        return "volumeAttributesClassName does not match"
    if volume.mode != (spec.get("volumeMode") or FILESYSTEM):
        return "incompatible volumeMode"
    return "" if volume.access_modes.issuperset(spec.get("accessModes") or ()) else "incompatible accessMode"


def _bind(volume: Object, claim: Object) -> list[Write]:
    """Return the next writes that bind the volume and the claim to each other; none if they are already bound.

    The volume is written first; if another claim gets it meanwhile, this claim stays unchanged. The event of each write
    triggers the next write.
    """
    raw, changed = bound_to(volume, claim)
    if changed:
        patch: dict[str, Any] = {"spec": {"claimRef": raw["spec"]["claimRef"]}}
        if raw["metadata"].get("annotations") != volume.metadata.get("annotations"):
            patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
        return [patch_of(volume, patch, exactly=True)]
    writes = _volume_phase(Volume.of(volume), BOUND)
    annotations = {} if volume_of(claim) else {BOUND_BY_CONTROLLER: "yes"}
    if BIND_COMPLETED not in claim.annotations:
        annotations[BIND_COMPLETED] = "yes"
    if annotations:
        patch = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume.name}}
        return [*writes, patch_of(claim, patch, exactly=True)]
    # the capacity of a bound claim changes only when its expansion is complete
    stated = claim.status.get("capacity") if claim.status.get("phase") == BOUND else None
    status = {"accessModes": volume.spec.get("accessModes"), "capacity": stated or volume.spec.get("capacity")}
    return [*writes, *_phase(claim, BOUND, status)]


def _phase(claim: Object, phase: str, more: Raw | None = None) -> list[Write]:
    wanted = {"phase": phase, **(more or {"accessModes": None, "capacity": None})}
    return [] if _has(claim, wanted) else [status_of(claim, wanted)]


def _volume_phase(volume: Volume, phase: str) -> list[Write]:
    return [] if volume.phase == phase else [status_of(volume.obj, {"phase": phase})]


def _has(obj: Object, wanted: Raw) -> bool:
    return all(obj.status.get(name) == value for name, value in wanted.items())


def _unbind(volume: Volume) -> list[Write]:
    """Release a volume if its claim is bound to another volume.

    A user's pre-binding remains, but names the claim without its uid.
    """
    if BOUND_BY_CONTROLLER in volume.obj.annotations:
        patch: dict[str, Any] = {
            "spec": {"claimRef": None},
            "metadata": {"annotations": {BOUND_BY_CONTROLLER: None}},
        }
    else:
        patch = {"spec": {"claimRef": {"uid": None}}}
    return [patch_of(volume.obj, patch, exactly=True), *_volume_phase(volume, AVAILABLE)]
