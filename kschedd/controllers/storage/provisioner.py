"""The embedded cluster's volume provisioner: creates a volume for a claim after a configurable delay.

The provisioner replaces the provisioner of every CSI driver. A volume for a claim with a selected node is accessible
from that node's topology. The topology contains the node's values for some keys: the keys that the driver reports on
the CSINode, otherwise the keys in the class' allowedTopologies, otherwise the zone. StorageClass annotations set the
delay and whether provisioning fails (`kschedd.io/provision-seconds`: a number, or `never`;
`kschedd.io/provision-fails`: `true`). After a failure the claim's selected-node annotation is removed, so that the
scheduler may choose another node.

Source: sig-storage-lib-external-provisioner (ShouldProvision, provisionClaimOperation) and external-provisioner
(topology.go), as of Kubernetes v1.34.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.controllers.object_events import object_event
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.storage.claims import (
    FILESYSTEM,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    class_of,
    volume_of,
)
from kschedd.storage.migration import BETA_ZONE, BY_PLUGIN, ZONE
from kschedd.storage.provisioning import NO_PROVISIONER, allowed_topologies
from kschedd.storage.volumes import reference
from kschedd.store.errors import AlreadyExists, ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Create, Write, patch_of

PROVISION_SECONDS: Final = "kschedd.io/provision-seconds"
PROVISION_FAILS: Final = "kschedd.io/provision-fails"
CLAIM, CLASS = "PersistentVolumeClaim", "StorageClass"


def delay_of(storage_class: Object, default_s: float) -> float:
    """Return the provisioning delay of the class in seconds; infinite for `never`."""
    text = storage_class.annotations.get(PROVISION_SECONDS)
    if text == "never":
        return math.inf
    try:
        wanted = default_s if text is None else float(text)
    except ValueError:
        return default_s
    return wanted if 0 <= wanted < math.inf else default_s


class Provisioner:
    name: Final = "provisioner"
    kinds: Final = frozenset((CLAIM,))

    def __init__(self, delay_s: float = 1.0) -> None:
        """Create a provisioner. `delay_s` is the delay for classes without the annotation."""
        self._delay_s = delay_s
        self._due: Timers[tuple[str, str, str]] = Timers()  # due time by (namespace, name, uid) of a claim
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._due.next

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        for event in events:
            claim = event.new
            key = (claim.namespace, claim.name, claim.uid)
            if event.type == DELETED or not self._is_wanted(claim, view):
                self._due.clear(key)
            elif key not in self._due:
                storage_class = view.find(CLASS, "", class_of(claim))
                delay_s = math.inf if storage_class is None else delay_of(storage_class, self._delay_s)
                if delay_s < math.inf:
                    self._due.set(key, now + delay_s)
        due = {(namespace, name): uid for namespace, name, uid in self._due.due(now)}
        return self.faults.each(CLAIM, due, partial(self._serve, view, due), now)

    def _serve(
        self, view: View, due: Mapping[tuple[str, str], str], namespace: str, name: str, now: float
    ) -> list[Write]:
        found = view.find(CLAIM, namespace, name)
        if found is None or found.uid != due[namespace, name] or not self._is_wanted(found, view):
            return []
        return self._provision(found, view, now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        volume = isinstance(write, Create) and write.raw["kind"] == "PersistentVolume"
        if isinstance(write, Create) and volume and not isinstance(error, AlreadyExists):
            ref = write.raw["spec"]["claimRef"]
            self._due.set((ref["namespace"], ref["name"], ref["uid"]), now + max(self._delay_s, 1.0))
        return []

    def _is_wanted(self, claim: Object, view: View) -> bool:
        """Return whether a volume should be provisioned for the claim."""
        if volume_of(claim) or claim.deleting or not claim.annotations.get(STORAGE_PROVISIONER):
            return False
        storage_class = view.find(CLASS, "", class_of(claim))
        if storage_class is None or storage_class.raw.get("provisioner") in (None, "", NO_PROVISIONER):
            return False
        waits = storage_class.raw.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
        return not waits or SELECTED_NODE in claim.annotations

    def _provision(self, claim: Object, view: View, now: float) -> list[Write]:
        storage_class = view.find(CLASS, "", class_of(claim))
        assert storage_class is not None, "a claim is only asked for with its class"
        driver = _driver(storage_class)
        chosen = claim.annotations.get(SELECTED_NODE)
        node = view.find("Node", "", chosen) if chosen is not None else None
        fails = storage_class.annotations.get(PROVISION_FAILS) == "true"
        if fails or (chosen is not None and node is None):
            why = f'failed to provision volume with StorageClass "{storage_class.name}": '
            gone = f'failed to get target node: node "{chosen}" not found'
            why += "the class says that provisioning fails" if fails else gone
            event = object_event(claim, "ProvisioningFailed", why, driver, now, warning=True)
            if chosen is None:
                self._due.set((claim.namespace, claim.name, claim.uid), now + max(self._delay_s, 1.0))
                return [event]
            return [event, patch_of(claim, {"metadata": {"annotations": {SELECTED_NODE: None}}})]
        csi_node = view.find("CSINode", "", chosen) if chosen is not None else None
        made = new_volume(claim, storage_class, node, csi_node)
        message = f"Successfully provisioned volume {made['metadata']['name']}"
        return [Create(made), object_event(claim, "ProvisioningSucceeded", message, driver, now)]


def _driver(storage_class: Object) -> str:
    provisioner: str = storage_class.raw["provisioner"]
    plugin = BY_PLUGIN.get(provisioner)
    return provisioner if plugin is None else plugin.driver


def new_volume(claim: Object, storage_class: Object, node: Object | None, csi_node: Object | None) -> dict[str, Any]:
    """Return the claim's new PersistentVolume; if `node` is given, the volume must be accessible from it."""
    driver = _driver(storage_class)
    spec: dict[str, Any] = {
        "capacity": {"storage": ((claim.spec.get("resources") or {}).get("requests") or {}).get("storage", "0")},
        "accessModes": list(claim.spec.get("accessModes") or ()),
        "persistentVolumeReclaimPolicy": storage_class.raw.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class.name,
        "volumeMode": claim.spec.get("volumeMode") or FILESYSTEM,
        "claimRef": reference(claim),
        # A provisioner's name may be invalid as the name of a CSI driver.
        "csi": {"driver": driver.replace("/", ".")[:63].lower(), "volumeHandle": f"pvc-{claim.uid}"},
    }
    for field, wanted in (
        ("volumeAttributesClassName", claim.spec.get("volumeAttributesClassName")),
        ("mountOptions", storage_class.raw.get("mountOptions")),
        ("nodeAffinity", _affinity(_topology(storage_class, node, csi_node, driver))),
    ):
        if wanted:
            spec[field] = wanted
    annotations = {PROVISIONED_BY: driver}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pvc-{claim.uid}", "annotations": annotations},
        "spec": spec,
    }


def _topology(storage_class: Object, node: Object | None, csi_node: Object | None, driver: str) -> dict[str, str]:
    """Return the volume's topology, as node label -> value."""
    terms = allowed_topologies(storage_class.raw.get("allowedTopologies")) or ()
    if node is None:
        # Without a selected node, the class' first allowed topology is used.
        return {demand.key: demand.values[0] for term in terms[:1] for demand in term.requirements}
    reported = [d for d in (csi_node.spec.get("drivers") or () if csi_node else ()) if d.get("name") == driver]
    keys = [key for d in reported for key in d.get("topologyKeys") or ()]
    if not keys:
        keys = [demand.key for term in terms if term.matches(node.labels) for demand in term.requirements]
    if not keys:
        keys = [key for key in (ZONE, BETA_ZONE) if key in node.labels][:1]
    return {key: node.labels[key] for key in dict.fromkeys(keys) if key in node.labels}


def _affinity(topology: dict[str, str]) -> Raw | None:
    if not topology:
        return None
    demands = [{"key": key, "operator": "In", "values": [label]} for key, label in topology.items()]
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": demands}]}}
