"""The embedded cluster's volume resizer, which enlarges the volume of a claim after the claim's request is increased.

The resizer replaces the external resizer of every CSI driver. The resizer increases the capacity of the
PersistentVolume. The claim then waits until the kubelet enlarges its file system, while a pod mounts the volume
(`kschedd.controllers.kubelets.expansion`). The expansion of a claim for a block device is complete without this step,
because there is no file system. Volumes without a CSI driver are not resized.

Owns: the sizes for which an Event was written. Source: external-resizer, pkg/controller/expand_and_recover.go;
Kubernetes v1.36, pkg/controller/volume/expand/expand_controller.go (the Event ExternalExpanding).
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from kschedd.api.objects import Object
from kschedd.api.quantity import nanos
from kschedd.api.text.times import stamp
from kschedd.controllers.object_events import object_event
from kschedd.controllers.running.controller import View
from kschedd.object_faults import FaultLedger
from kschedd.storage.claims import FILESYSTEM, requested, volume_of
from kschedd.storage.expansion import finished_status, pending_status, waits_for_node, wants_more
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Write, patch_of, status_of

_CLAIM: Final = "PersistentVolumeClaim"
_EXPANDER: Final = "volume_expand"


class VolumeResizer:
    name: Final = "resizer"
    kinds: Final = frozenset((_CLAIM,))
    next_deadline: Final[float | None] = None

    def __init__(self) -> None:
        self._reported: dict[str, int] = {}  # size for which an Event was written, by UID of the claim
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def concerns(self, event: WatchEvent) -> bool:
        return event.type == DELETED or wants_more(event.new)

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        claims: dict[tuple[str, str], None] = {}
        for event in events:
            if event.type == DELETED:
                self._reported.pop(event.new.uid, None)
            else:
                claims[event.new.namespace, event.new.name] = None
        return self.faults.each(_CLAIM, claims, partial(self._look_at, view), now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        return []

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        claim = view.find(_CLAIM, namespace, name)
        if claim is None or claim.deleting or not wants_more(claim):
            return []
        volume = view.find("PersistentVolume", "", volume_of(claim))
        if volume is None or (volume.spec.get("claimRef") or {}).get("uid") != claim.uid:
            return []
        writes: list[Write] = []
        csi = volume.spec.get("csi")
        if self._reported.get(claim.uid) != requested(claim):
            self._reported[claim.uid] = requested(claim)
            waiting = "waiting for an external controller to expand this PVC"
            writes.append(object_event(claim, "ExternalExpanding", waiting, _EXPANDER, now, warning=csi is None))
        return writes if csi is None or waits_for_node(claim) else [*writes, *_expand(claim, volume, now)]


def _expand(claim: Object, volume: Object, now: float) -> list[Write]:
    size = claim.spec["resources"]["requests"]["storage"]
    component = f"external-resizer {volume.spec['csi']['driver']}"
    resizing = f"External resizer is resizing volume {volume.name}"
    writes: list[Write] = [object_event(claim, "Resizing", resizing, component, now)]
    if nanos((volume.spec.get("capacity") or {}).get("storage") or 0) < requested(claim):
        writes.append(patch_of(volume, {"spec": {"capacity": {"storage": size}}}))
    if (claim.spec.get("volumeMode") or FILESYSTEM) != FILESYSTEM:
        finished = object_event(claim, "VolumeResizeSuccessful", "Resize volume succeeded", component, now)
        return [*writes, status_of(claim, finished_status(claim, size)), finished]
    required = "Require file system resize of volume on node"
    pending = status_of(claim, pending_status(claim, size, stamp(now)))
    return [*writes, pending, object_event(claim, "FileSystemResizeRequired", required, component, now)]
