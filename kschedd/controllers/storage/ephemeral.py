"""The ephemeral volume controller: creates the claim of each generic ephemeral volume of a pod.

The pod owns the claim, so the claim is garbage-collected with the pod. An existing claim with that name but another
owner is not changed; the pod stays pending, and VolumeBinding reports the reason. If the creation of a claim is
rejected, for example by a quota, the controller retries after a delay.

Source: Kubernetes v1.34, controller/volume/ephemeral/controller.go.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.pods import Pod
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.controllers.workloads.backoff import CreateBackoff
from kschedd.controllers.workloads.ownership import Key
from kschedd.object_faults import FaultLedger
from kschedd.storage.claims import ephemeral_claim
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Create, Write


class EphemeralVolumes:
    name: Final = "ephemeral-volumes"
    kinds: Final = frozenset(("Pod", "PersistentVolumeClaim"))

    def __init__(self) -> None:
        self._later: Timers[Key] = Timers()  # pods with a rejected claim: time of the next attempt
        self._backoff = CreateBackoff(self._later)
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._later.next

    def concerns(self, event: WatchEvent) -> bool:
        obj = event.new
        return event.old is None and bool(obj.pod_spec.volumes) if isinstance(obj, Pod) else event.type == DELETED

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        pods: dict[tuple[str, str], None] = {key[1:]: None for key in self._later.due(now)}
        for event in events:
            obj = event.new
            if isinstance(obj, Pod):
                if event.old is None and obj.pod_spec.volumes:
                    pods[obj.namespace, obj.name] = None
            elif event.type == DELETED:
                owner = obj.owner
                if owner is not None and owner.kind == "Pod":
                    pods[obj.namespace, owner.name] = None
        return self.faults.each("Pod", pods, partial(self._serve, view), now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        if isinstance(write, Create):
            meta = write.raw["metadata"]
            self._backoff.refused(("Pod", meta["namespace"], meta["ownerReferences"][0]["name"]), now)
        return []

    def _serve(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        pod = view.find("Pod", namespace, name)
        writes: list[Write] = []
        if isinstance(pod, Pod) and not pod.finished and not pod.deletion_timestamp:
            writes = _missing_claims(pod, view)
        if not writes:
            self._backoff.clear(("Pod", namespace, name))
        return writes


def _missing_claims(pod: Pod, view: View) -> list[Write]:
    writes: list[Write] = []
    for volume in pod.pod_spec.volumes:
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is None:
            continue
        name = ephemeral_claim(pod, volume["name"])
        if view.find("PersistentVolumeClaim", pod.namespace, name) is None:
            writes.append(Create(_claim(pod, name, template)))
    return writes


def _claim(pod: Pod, name: str, template: dict[str, Any]) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    meta: dict[str, Any] = {
        "name": name,
        "namespace": pod.namespace,
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    for field in ("labels", "annotations"):
        if found := (template.get("metadata") or {}).get(field):
            meta[field] = found
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template["spec"]}
