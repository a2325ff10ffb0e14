"""PersistentVolumes: the fields on which decisions depend, parsed once, and the binding of a volume to a claim.

Source: Kubernetes v1.34, component-helpers/storage/volume/helpers.go and pv_helpers.go.
Units: capacity in nanos (billionths of a byte).
Errors: StorageError if upstream returns an error; a volume whose capacity cannot be parsed has the capacity 0.
"""

from collections.abc import Mapping
from typing import Any, Self

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.quantity import QuantityError, nanos
from kschedd.api.selecting.selectors import NodeSelector, Requirement, SelectorError, parse_node_selector
from kschedd.errors import KscheddError
from kschedd.storage.claims import BOUND_BY_CONTROLLER, FILESYSTEM, class_of
from kschedd.storage.label_index import required_node_label

AVAILABLE = "Available"


@attrs.define(eq=False)
class StorageError(KscheddError):
    """A claim, a StorageClass or a volume cannot be used; `why` is the message of Kubernetes."""

    why: str


@attrs.frozen
class ClaimRef:
    namespace: str
    name: str
    uid: str  # "" if a user reserved the volume only by the name of the claim


@attrs.frozen(eq=False)
class Volume:
    obj: Object
    name: str
    storage_class: str
    capacity: int
    mode: str
    access_modes: frozenset[str]
    attributes_class: str
    phase: str
    deleting: bool
    claim_ref: ClaimRef | None
    affinity: NodeSelector | None  # None: every node can use the volume
    demand: Requirement | None  # a label requirement met by every node that can use the volume

    @classmethod
    def of(cls, obj: Object) -> Self:
        spec = obj.spec
        ref = spec.get("claimRef")
        affinity = node_affinity(spec.get("nodeAffinity"))
        return cls(
            obj,
            obj.name,
            class_of(obj),
            capacity(obj),
            spec.get("volumeMode") or FILESYSTEM,
            frozenset(spec.get("accessModes") or ()),
            spec.get("volumeAttributesClassName") or "",
            obj.status.get("phase") or "",
            obj.deleting,
            None if ref is None else ClaimRef(ref.get("namespace") or "", ref.get("name") or "", ref.get("uid") or ""),
            affinity,
            required_node_label(affinity),
        )

    def reserved_for(self, claim: Object) -> bool:
        """Return whether the volume is bound or pre-bound to the claim."""
        ref = self.claim_ref
        return (
            ref is not None
            and ref.name == claim.name
            and ref.namespace == claim.namespace
            and ref.uid in ("", claim.uid)
        )

    def usable_from(self, labels: Mapping[str, str]) -> bool:
        return usable_from(self.affinity, labels)


def capacity(volume: Object) -> int:
    """Return the volume's capacity in nanos."""
    try:
        return nanos((volume.spec.get("capacity") or {}).get("storage") or 0)
    except QuantityError:
        return 0


def node_affinity(raw: Raw | None) -> NodeSelector | None:
    """Return the node selector of a VolumeNodeAffinity; None if it requires nothing."""
    required = None if raw is None else raw.get("required")
    return None if required is None else parse_node_selector(required)


def usable_from(affinity: NodeSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether a node with these labels can use a volume with this affinity.

    Only labels are compared: a matchFields term for metadata.name counts as met. An invalid selector matches nothing.
    """
    if affinity is None:
        return True
    try:
        return affinity.matches(labels, "")
    except SelectorError:
        return False


def reference(claim: Object) -> dict[str, Any]:
    """Return the claimRef, including the UID, that binds a volume to this claim."""
    ref = {"kind": "PersistentVolumeClaim", "namespace": claim.namespace, "name": claim.name, "uid": claim.uid}
    version = claim.metadata.get("resourceVersion")
    return {**ref, "apiVersion": "v1", **({"resourceVersion": version} if version else {})}


def bound_to(volume: Object, claim: Object) -> tuple[Raw, bool]:
    """Return the volume after its binding to the claim, and whether the binding changed it."""
    ref = volume.spec.get("claimRef")
    meant = Volume.of(volume).reserved_for(claim)
    raw = dict(volume.raw)
    changed = False
    if ref is None or (ref.get("name"), ref.get("namespace"), ref.get("uid")) != (
        claim.name,
        claim.namespace,
        claim.uid,
    ):
        raw["spec"] = {**volume.spec, "claimRef": reference(claim)}
        changed = True
    if not meant and BOUND_BY_CONTROLLER not in volume.annotations:
        # When the claim is deleted, a claimRef that a user set is kept, and a claimRef that a binder set is removed.
        raw["metadata"] = {
            **volume.metadata,
            "annotations": {**volume.annotations, BOUND_BY_CONTROLLER: "yes"},
        }
        changed = True
    return (raw, True) if changed else (volume.raw, False)
