"""PersistentVolumes: what deciding reads of one, taken out once, and how a volume is marked for a claim.

Source: Kubernetes v1.34, component-helpers/storage/volume/helpers.go and pv_helpers.go.
Units: capacity in nanos (billionths of a byte).
Errors: StorageError where upstream ends with an error; a volume whose capacity cannot be read has none.
"""

from collections.abc import Mapping
from typing import Any, Self

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.quantity import QuantityError, nanos
from kschedd.api.selectors import NodeSelector, Requirement, SelectorError, parse_node_selector
from kschedd.errors import KscheddError
from kschedd.storage.by_label import demand_of_nodes
from kschedd.storage.claims import BOUND_BY_CONTROLLER, FILESYSTEM, class_of

AVAILABLE = "Available"


@attrs.define(eq=False)
class StorageError(KscheddError):
    """What a claim, class or volume says cannot be acted on; `why` is in upstream's words."""

    why: str

    def __str__(self) -> str:
        return self.why


@attrs.frozen
class ClaimRef:
    namespace: str
    name: str
    uid: str  # "" where somebody reserved the volume by name only


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
    affinity: NodeSelector | None  # None: usable from every node
    demand: Requirement | None  # a label that a node which can use it has in any case

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
            demand_of_nodes(affinity),
        )

    def reserved_for(self, claim: Object) -> bool:
        """Whether it is bound to the claim, or meant for it."""
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
    """Nanos."""
    try:
        return nanos((volume.spec.get("capacity") or {}).get("storage") or 0)
    except QuantityError:
        return 0


def node_affinity(raw: Raw | None) -> NodeSelector | None:
    """The selector of a VolumeNodeAffinity; None for one that demands nothing."""
    required = None if raw is None else raw.get("required")
    return None if required is None else parse_node_selector(required)


def usable_from(affinity: NodeSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels can use a volume with this affinity.

    Only labels are compared: a term about metadata.name is taken as met. A faulty selector matches nothing.
    """
    if affinity is None:
        return True
    try:
        return affinity.matches(labels, "")
    except SelectorError:
        return False


def reference(claim: Object) -> dict[str, Any]:
    """The claimRef that binds a volume to this very claim."""
    ref = {"kind": "PersistentVolumeClaim", "namespace": claim.namespace, "name": claim.name, "uid": claim.uid}
    version = claim.metadata.get("resourceVersion")
    return {**ref, "apiVersion": "v1", **({"resourceVersion": version} if version else {})}


def bound_to(volume: Object, claim: Object) -> tuple[Raw, bool]:
    """The volume as it is once bound to the claim, and whether that is a change."""
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
        # Who reserved the volume by name keeps it when the claim goes; what a binder took it gives back.
        raw["metadata"] = {
            **volume.metadata,
            "annotations": {**volume.annotations, BOUND_BY_CONTROLLER: "yes"},
        }
        changed = True
    return (raw, True) if changed else (volume.raw, False)
