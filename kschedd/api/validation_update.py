"""Validation of changes: which fields of an object stay as they were made.

Source: Kubernetes v1.34, the Validate*Update functions of pkg/apis/*/validation.
Takes the object before and after, both defaulted and each good by itself.  Pods are not judged here: what may
change of them depends on the subresource a request goes to, and that is the store's to know.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kschedd.api.fields import FieldError, forbidden, invalid
from kschedd.api.kinds import kind_of
from kschedd.api.quantity import nanos

Raw = Mapping[str, Any]
Faults = list[FieldError]

FIELD_IS_IMMUTABLE: Final = "field is immutable"

_IMMUTABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "Deployment": ("spec.selector",),
    "ReplicaSet": ("spec.selector",),
    "DaemonSet": ("spec.selector",),
    "PriorityClass": ("preemptionPolicy",),
    "RuntimeClass": ("handler",),
    "ResourceQuota": ("spec.scopes",),
    "StorageClass": ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    "CSIDriver": ("spec.attachRequired", "spec.volumeLifecycleModes"),
    "CSIStorageCapacity": ("nodeTopology", "storageClassName"),
    "VolumeAttachment": ("spec",),
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec",),
    "ResourceSlice": ("spec.driver", "spec.pool.name", "spec.nodeName"),
}


def validate_update(old: Raw, new: Raw) -> Faults:
    """What `new` changes of `old` that may not be changed."""
    kind = kind_of(old)
    if not kind.known:
        return []
    faults = [
        invalid(path, _at(new, path), FIELD_IS_IMMUTABLE)
        for path in _IMMUTABLE.get(kind.name, ())
        if _at(old, path) != _at(new, path)
    ]
    if check := _BY_KIND.get(kind.name):
        check(old, new, faults)
    return faults


def _at(raw: Raw, path: str) -> Any:
    found: Any = raw
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _priority_class(old: Raw, new: Raw, faults: Faults) -> None:
    if (old.get("value") or 0) != (new.get("value") or 0):
        faults.append(forbidden("value", "may not be changed in an update."))


_STATEFUL_SET_MUTABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _stateful_set(old: Raw, new: Raw, faults: Faults) -> None:
    if _without(old.get("spec"), _STATEFUL_SET_MUTABLE) != _without(new.get("spec"), _STATEFUL_SET_MUTABLE):
        fields = ", ".join(f"'{field}'" for field in _STATEFUL_SET_MUTABLE[:-1])
        last = _STATEFUL_SET_MUTABLE[-1]
        why = f"updates to statefulset spec for fields other than {fields} and '{last}' are forbidden"
        faults.append(forbidden("spec", why))


def _without(spec: Raw | None, fields: tuple[str, ...]) -> Raw:
    return {field: value for field, value in (spec or {}).items() if field not in fields}


def _job(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    fixed = ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"]
    # A suspended job that has not started yet may still change where its pods go.
    if not (before.get("suspend") and not (old.get("status") or {}).get("startTime")):
        fixed.append("template")
    if before.get("completionMode") != "Indexed":
        fixed.append("completions")
    for field in fixed:
        if before.get(field) != after.get(field):
            faults.append(invalid(f"spec.{field}", after.get(field), FIELD_IS_IMMUTABLE))


_CLAIM_IMMUTABLE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _claim(old: Raw, new: Raw, faults: Faults) -> None:
    """A claim may be bound once, given a class if it had none, and grow while it is bound."""
    before, after = dict(old.get("spec") or {}), dict(new.get("spec") or {})
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        after.pop("volumeName", None)
    if "storageClassName" not in before:
        after.pop("storageClassName", None)
    if (old.get("status") or {}).get("phase") == "Bound":
        then = ((before.get("resources") or {}).get("requests") or {}).get("storage")
        now = ((after.get("resources") or {}).get("requests") or {}).get("storage")
        if then is not None and now is not None:
            least = ((old.get("status") or {}).get("capacity") or {}).get("storage") or then
            if nanos(now) < nanos(then) and nanos(now) <= nanos(least):
                why = "field can not be less than status.capacity"
                faults.append(forbidden("spec.resources.requests.storage", why))
            after["resources"] = before.get("resources")
        before.pop("volumeAttributesClassName", None)
        after.pop("volumeAttributesClassName", None)
    if before != after:
        faults.append(forbidden("spec", _CLAIM_IMMUTABLE))


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
    if _without(before, _VOLUME_MUTABLE) != _without(after, _VOLUME_MUTABLE):
        faults.append(
            forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
        )
    for field in ("volumeMode", "nodeAffinity"):
        if before.get(field) is not None and before.get(field) != after.get(field):
            faults.append(invalid(f"spec.{field}", after.get(field), FIELD_IS_IMMUTABLE))


_BY_KIND: Final[Mapping[str, Callable[[Raw, Raw, Faults], None]]] = {
    "PriorityClass": _priority_class,
    "StatefulSet": _stateful_set,
    "Job": _job,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume,
}
