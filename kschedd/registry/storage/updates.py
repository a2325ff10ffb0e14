"""Validation of updates of volumes, claims and their classes: immutable fields.

Source: Kubernetes v1.34, pkg/apis/{core,storage}/validation (the Validate*Update functions).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kschedd.api.nodes import RENAMED_LABELS
from kschedd.api.schemas.fields import FieldError, forbidden, invalid
from kschedd.api.schemas.schema import type_named
from kschedd.registry.go_structs import go_diff, go_source_diff, go_struct
from kschedd.registry.same import FIELD_IS_IMMUTABLE, at, canonical_amount, same, same_in, without
from kschedd.registry.storage.validation import validate_attributes_class

Raw = Mapping[str, Any]
Faults = list[FieldError]


def _storage_class(old: Raw, new: Raw, faults: Faults) -> None:
    for field in ("parameters", "provisioner", "reclaimPolicy"):
        same_value = same_in(old, new, field, type_named("storage.v1.StorageClass"))
        none_now_stated = (
            field == "parameters" and new.get(field) == {} and field not in old
        )  # upstream distinguishes a missing list and an empty list
        if not same_value or none_now_stated:
            faults.append(forbidden(field, f"updates to {field} are forbidden."))


def _attributes_class(old: Raw, new: Raw, faults: Faults) -> None:
    for field in ("driverName", "parameters"):
        if (old.get(field) or None) != (new.get(field) or None):
            faults.append(forbidden(field, f"updates to {field} are forbidden."))
    validate_attributes_class(dict(new), faults)  # as in upstream, the object is validated again after the change


def _csi_node(old: Raw, new: Raw, faults: Faults) -> None:
    """Check that no driver's entry was changed; drivers may be added or removed."""
    before = {driver.get("name"): driver for driver in (old.get("spec") or {}).get("drivers") or ()}
    for driver in (new.get("spec") or {}).get("drivers") or ():
        known = before.get(driver.get("name"))
        if known is not None and not same(known, driver, type_named("storage.v1.CSINodeDriver")):
            faults.append(invalid("spec.drivers", go_struct("CSINodeDriver", driver), FIELD_IS_IMMUTABLE))


_CLAIM_IMMUTABLE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _claim(old: Raw, new: Raw, faults: Faults) -> None:
    """Check the changes of a claim: binding it once, setting a missing storage class, and expanding it while bound."""
    before, after = dict(old.get("spec") or {}), dict(new.get("spec") or {})
    then, now = _requested(before), _requested(after)
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        after.pop("volumeName", None)
    if "storageClassName" not in before and _class_noted(old) in (None, after.get("storageClassName")):
        after.pop("storageClassName", None)
    if (new.get("status") or {}).get("phase") == "Bound":
        if "requests" in (after.get("resources") or {}):
            before["resources"], after["resources"] = _without_storage(before), _without_storage(after)
        if after.get("volumeAttributesClassName") is not None:
            before.pop("volumeAttributesClassName", None)
            after.pop("volumeAttributesClassName", None)
    then_all, now_all = _amounts(before), _amounts(after)
    _claim_class(old, new, faults)
    bare = without(before, ("resources",)), without(after, ("resources",))
    if not same(*bare, type_named("PersistentVolumeClaimSpec")) or then_all != now_all:
        changed = go_diff("PersistentVolumeClaimSpec", old.get("spec") or {}, new.get("spec") or {})
        faults.append(forbidden("spec", f"{_CLAIM_IMMUTABLE}\n{changed}"))
    provided = canonical_amount(((old.get("status") or {}).get("capacity") or {}).get("storage") or 0)
    if now < then and now <= provided:
        why = "field can not be less than status.capacity"
        faults.append(forbidden("spec.resources.requests.storage", why))
    had, has = at(old, "spec.volumeAttributesClassName"), at(new, "spec.volumeAttributesClassName")
    if had is not None and has != had and not has:
        what = "nil" if has is None else "an empty string"
        faults.append(forbidden("spec.volumeAttributesClassName", f"update from non-nil value to {what} is forbidden"))


_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def _class_noted(claim: Raw) -> str | None:
    noted: str | None = (claim["metadata"].get("annotations") or {}).get(_CLASS)
    return noted


def _claim_class(old: Raw, new: Raw, faults: Faults) -> None:
    """Check that the class in the deprecated annotation is unchanged or was moved to the field."""
    before, after = _class_noted(old), _class_noted(new)
    had, has = at(old, "spec.storageClassName"), at(new, "spec.storageClassName")
    moved = before is not None and had is None and has == before and after in (None, before)
    if not moved and (before or "") != (after or ""):
        faults.append(invalid(f"metadata.annotations.{_CLASS}", after or "", FIELD_IS_IMMUTABLE))


def _requested(spec: Raw) -> Any:
    return canonical_amount(((spec.get("resources") or {}).get("requests") or {}).get("storage") or 0)


def _without_storage(spec: Raw) -> Raw:
    resources = spec.get("resources") or {}
    requests = {name: amount for name, amount in (resources.get("requests") or {}).items() if name != "storage"}
    return {**resources, "requests": requests}


def _amounts(spec: Raw) -> dict[tuple[str, str], Any]:
    resources = spec.get("resources") or {}
    return {
        (part, name): canonical_amount(amount)
        for part in ("requests", "limits")
        for name, amount in (resources.get(part) or {}).items()
    }


_VOLUME_MUTABLE: Final = (
    "capacity",
    "accessModes",
    "claimRef",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "mountOptions",
    "volumeMode",
    "nodeAffinity",
    "volumeAttributesClassName",
)


def _volume(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    secret = "controllerExpandSecretRef"  # may be set later
    if "csi" in before and "csi" in after and secret not in before["csi"]:
        after = {**after, "csi": {name: value for name, value in after["csi"].items() if name != secret}}
    sources = without(before, _VOLUME_MUTABLE), without(after, _VOLUME_MUTABLE)
    if not same(*sources, type_named("PersistentVolumeSpec")):
        why = f"spec.persistentvolumesource is immutable after creation\n{go_source_diff(before, after)}"
        faults.append(forbidden("spec.persistentvolumesource", why))
    then = {"nodeAffinity": _with_new_labels(before.get("nodeAffinity"), after.get("nodeAffinity"))}
    if "nodeAffinity" in before and not same_in(then, after, "nodeAffinity", type_named("PersistentVolumeSpec")):
        why = f"{FIELD_IS_IMMUTABLE}, except for updating from beta label to GA"
        shown = after.get("nodeAffinity")
        faults.append(invalid("nodeAffinity", None if shown is None else go_struct("VolumeNodeAffinity", shown), why))
    if before.get("volumeAttributesClassName") is not None and after.get("volumeAttributesClassName") is None:
        why = "update from non-nil value to nil is forbidden"
        faults.append(forbidden("spec.volumeAttributesClassName", why))


def _with_new_labels(then: Any, now: Any) -> Any:
    """Return the old node affinity, with deprecated labels renamed if the new affinity uses their current names."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        renamed = {name: _with_new_labels(value, now.get(name)) for name, value in then.items()}
        if "key" in then and RENAMED_LABELS.get(then["key"], "") == now.get("key"):
            renamed["key"] = now["key"]
        return renamed
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return [_with_new_labels(*pair) for pair in zip(then, now, strict=True)]
    return then


UPDATES: Final[Mapping[str, Callable[[Raw, Raw, Faults], None]]] = {
    "StorageClass": _storage_class,
    "CSINode": _csi_node,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume,
    "VolumeAttributesClass": _attributes_class,
}
