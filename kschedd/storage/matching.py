"""Selection of the existing volume for a claim: the volume pre-bound to the claim, or the smallest matching one.

Checks that do not depend on the node are made once for all nodes (`candidates`). For each node, only the volumes that
the node may be able to use are checked, smallest first. Volumes of equal size keep the order of the list.
Source: Kubernetes v1.34, component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume).
Errors: StorageError if the claim's selector or volumeAttributesClassName cannot be used.
"""

from collections.abc import Collection, Iterable, Mapping

import attrs

from kschedd.api.objects import Object
from kschedd.api.selecting.selectors import LabelSelector, SelectorError, parse_label_selector
from kschedd.storage.claims import FILESYSTEM, class_of, requested
from kschedd.storage.label_index import LabelIndex
from kschedd.storage.volumes import AVAILABLE, StorageError, Volume


@attrs.frozen(eq=False)
class VolumeCandidates:
    """The volumes to which one claim can be bound."""

    reserved: tuple[Volume, ...]  # pre-bound volumes: their claimRef refers to this claim
    free: tuple[Volume, ...]  # available volumes, smallest first
    _near: LabelIndex[Volume]

    def on(self, labels: Mapping[str, str], taken: Collection[str] = ()) -> Volume | None:
        """Return the volume to which the claim is bound on a node with these labels; volumes in `taken` are excluded.

        If the node cannot use a pre-bound volume, no other volume is tried.
        """
        for volume in self.reserved:
            if volume.name not in taken:
                return volume if volume.usable_from(labels) else None
        for volume in self._near.candidates(labels):
            if volume.name not in taken and volume.usable_from(labels):
                return volume
        return None


def candidates(claim: Object, volumes: Iterable[Volume], *, attributes_classes: bool = True) -> VolumeCandidates:
    """Return the volumes that match the claim.

    `attributes_classes` is the state of the feature gate VolumeAttributesClass.
    """
    selector = _selector(claim)
    wanted_attributes = claim.spec.get("volumeAttributesClassName") or ""
    if wanted_attributes and not attributes_classes:
        raise StorageError(
            f"unsupported volumeAttributesClassName is set on claim {claim.key} "
            "when the feature-gate VolumeAttributesClass is disabled"
        )
    size = requested(claim)
    storage_class = class_of(claim)
    mode = claim.spec.get("volumeMode") or FILESYSTEM
    modes = frozenset(claim.spec.get("accessModes") or ())
    reserved: list[Volume] = []
    free: list[Volume] = []
    for volume in volumes:
        meant = volume.claim_ref is not None and volume.reserved_for(claim)
        if (
            (volume.claim_ref is not None and not meant)
            or volume.capacity < size
            or volume.mode != mode
            or volume.attributes_class != wanted_attributes
            or volume.deleting
        ):
            continue
        if meant:
            reserved.append(volume)
        elif (
            # A volume in another phase may soon become Available, but binding it at this time would race with its
            # controller.
            volume.phase == AVAILABLE
            and volume.storage_class == storage_class
            and modes <= volume.access_modes
            and (selector is None or selector.matches(volume.obj.labels))
        ):
            free.append(volume)
    free.sort(key=lambda volume: volume.capacity)
    filed = LabelIndex.of((volume, volume.demand) for volume in free)
    return VolumeCandidates(tuple(reserved), tuple(free), filed)


def _selector(claim: Object) -> LabelSelector | None:
    raw = claim.spec.get("selector")
    if raw is None:
        return None
    try:
        return parse_label_selector(raw)
    except SelectorError as fault:
        raise StorageError(f"error creating internal label selector for claim: {claim.key}: {fault}") from fault
