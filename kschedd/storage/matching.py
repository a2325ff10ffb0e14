"""Which existing volume a claim gets: one that is meant for it, else the smallest that will do.

What does not depend on the node is decided once for all nodes (`candidates`); a node then sees only the volumes it may
be able to use, smallest first. Equal sizes keep the order of the list.
Source: Kubernetes v1.34, component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume).
Errors: StorageError if the claim's own selector or class of attributes cannot be used.
"""

from collections.abc import Collection, Iterable, Mapping

import attrs

from kschedd.api.objects import Object
from kschedd.api.selectors import LabelSelector, SelectorError, parse_label_selector
from kschedd.storage.by_label import ByLabel
from kschedd.storage.claims import FILESYSTEM, class_of, requested
from kschedd.storage.volumes import AVAILABLE, StorageError, Volume


@attrs.frozen(eq=False)
class Candidates:
    """The volumes one claim could be bound to."""

    reserved: tuple[Volume, ...]  # meant for this very claim, whatever else they are
    free: tuple[Volume, ...]  # smallest first
    _near: ByLabel[Volume]

    def on(self, labels: Mapping[str, str], taken: Collection[str] = ()) -> Volume | None:
        """The volume the claim gets on a node with these labels; `taken` are names that are out of the question.

        If the one that is meant for it cannot be used from there, none can.
        """
        for volume in self.reserved:
            if volume.name not in taken:
                return volume if volume.usable_from(labels) else None
        for volume in self._near.near(labels):
            if volume.name not in taken and volume.usable_from(labels):
                return volume
        return None


def candidates(claim: Object, volumes: Iterable[Volume], *, attributes_classes: bool = True) -> Candidates:
    """The volumes of `volumes` for the claim. `attributes_classes`: the feature gate VolumeAttributesClass."""
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
            # One that is not available yet soon will be; binding it now would collide with whoever works on it.
            volume.phase == AVAILABLE
            and volume.storage_class == storage_class
            and modes <= volume.access_modes
            and (selector is None or selector.matches(volume.obj.labels))
        ):
            free.append(volume)
    free.sort(key=lambda volume: volume.capacity)
    filed = ByLabel.of((volume, volume.demand) for volume in free)
    return Candidates(tuple(reserved), tuple(free), filed)


def _selector(claim: Object) -> LabelSelector | None:
    raw = claim.spec.get("selector")
    if raw is None:
        return None
    try:
        return parse_label_selector(raw)
    except SelectorError as fault:
        raise StorageError(f"error creating internal label selector for claim: {claim.key}: {fault}") from fault
