"""Updates: the fields of an object that a request may change, and the fields that stay unchanged.

A plain update does not change the status. A status update changes only the status. A client cannot change the metadata
that the server sets (UID, creation time, deletion time). `kschedd.registry.validation_update` defines which other
fields are immutable.
Source: Kubernetes v1.34, the strategies in pkg/registry.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.fields import WHOLE, FieldError, forbidden, invalid
from kschedd.registry.pods.annotations import (
    MIRROR,
    validate_annotation_changes,
    validate_pod_annotations,
)
from kschedd.registry.pods.resize import refuse_resize, validate_pod_resize
from kschedd.registry.pods.update import validate_pod_update
from kschedd.registry.validation_update import validate_meta_update, validate_update
from kschedd.store.errors import Conflict, Invalid, MalformedVersion
from kschedd.store.patches.merging import merge_patch

Subresource = Literal["", "status", "resize", "ephemeralcontainers", "finalize", "scale", "approval"]
OF_STATUS: Final[frozenset[Subresource]] = frozenset(("status", "approval"))
"""Subresources that change only the status and the metadata."""

_IDENTITY: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


_RESIZED: Final = ("resources", "resizePolicy")


def check_preconditions(old: Object, meta: Raw) -> None:
    """Raise Conflict if the request's resourceVersion or uid differs from the object's."""
    check_resource_version(old, meta)
    uid = meta.get("uid")
    if uid and uid != old.uid:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}"
        raise Conflict(old.kind, old.name, why)


def check_resource_version(old: Object, meta: Raw) -> None:
    """Raise Conflict if the requested resourceVersion is not current, or MalformedVersion if it is not a number."""
    version = meta.get("resourceVersion")
    if isinstance(version, str) and version and not (version.isascii() and version.isdigit()):
        raise MalformedVersion(version)
    if version and str(version) not in ("0", str(old.resource_version)):
        raise Conflict(old.kind, old.name)


def merge_patched(old: Object, patch: Any) -> dict[str, Any]:
    """Return the whole object after a client's RFC 7386 patch. Raises Invalid, Conflict and MalformedVersion."""
    if not isinstance(patch, Mapping) or not isinstance(patch.get("metadata") or {}, Mapping):
        wrong = invalid("", patch, "a merge patch is a mapping, and so is its metadata")
        raise Invalid(old.kind, old.name, (wrong,))
    meta = patch.get("metadata") or {}
    check_resource_version(old, meta)
    whole: dict[str, Any] = merge_patch(old.raw, {**patch, "metadata": meta})
    if "metadata" in patch and patch["metadata"] is None:
        whole["metadata"] = None
    return whole


def merged_update(old: Object, raw: Raw, subresource: Subresource) -> dict[str, Any]:
    """Return the updated object: fields that this request may change are from `raw`, all others from `old`."""
    meta = merged_meta(old, raw.get("metadata") or {})
    if subresource == "resize":
        return {**old.raw, "spec": _resized(old.raw["spec"], raw.get("spec") or {})}
    if subresource == "ephemeralcontainers":
        added = (raw.get("spec") or {}).get("ephemeralContainers") or []
        return {**old.raw, "spec": {**old.raw["spec"], "ephemeralContainers": added}}
    changed = {**raw, "metadata": meta}
    changed.setdefault("apiVersion", old.raw.get("apiVersion"))
    return changed


def merged_meta(old: Object, given: Raw) -> dict[str, Any]:
    """Return the metadata of an update; fields that only the server may set are from the old object."""
    before = old.metadata
    meta = {name: value for name, value in given.items() if name not in _IDENTITY}
    meta.update((name, before[name]) for name in _IDENTITY if name in before)
    return meta


def meta_faults(old: Object, given: Raw) -> list[FieldError]:
    """Return the errors in the changes of the metadata."""
    return validate_meta_update(old.metadata, given)


def _resized(old: Raw, new: Raw) -> Raw:
    """Return the old spec with the new spec's container resources.

    If the container lists differ, the new containers are returned; validation then rejects them.
    """
    spec = dict(old)
    for field in ("containers", "initContainers"):
        before, after = old.get(field) or [], new.get(field) or []
        if not isinstance(after, list) or not all(isinstance(container, Mapping) for container in after):
            spec[field] = after
        elif [container.get("name") for container in before] != [container.get("name") for container in after]:
            spec[field] = after
        elif before:
            spec[field] = [_with_resources(then, now) for then, now in zip(before, after, strict=True)]
    return spec


def _with_resources(then: Raw, now: Raw) -> Raw:
    changed = {**then, **{field: now[field] for field in _RESIZED if field in now}}
    return {field: value for field, value in changed.items() if field not in _RESIZED or field in now}


def update_faults(
    old: Object, before: Raw, new: Raw, subresource: Subresource, features: frozenset[str]
) -> list[FieldError]:
    """Return the errors for changes of immutable fields.

    `before` is the old object, decoded like the new object; `features` are the enabled features. Raise Invalid if
    upstream reports only a single error for this update.
    """
    if old.kind != "Pod":
        return validate_update(before, new)
    if alone := _exclusive_faults(before, new, subresource, features):
        raise Invalid(old.kind, old.name, tuple(alone))
    faults = _annotation_faults(before, new, subresource)
    if subresource == "ephemeralcontainers":
        present = before["spec"].get("ephemeralContainers") or []
        after = {each.get("name"): each for each in new["spec"].get("ephemeralContainers") or []}
        for each in present:
            name, kept = each.get("name"), after.get(each.get("name"))
            if kept != each:
                what = "changed" if kept else "removed"
                why = f'existing ephemeral containers "{name}" may not be {what}\n'
                faults.append(forbidden("spec.ephemeralContainers", why))
        return faults
    if subresource == "resize":
        return faults + validate_pod_resize(before, new)
    return faults + validate_pod_update(before["spec"], new["spec"])


def _exclusive_faults(before: Raw, new: Raw, subresource: Subresource, features: frozenset[str]) -> list[FieldError]:
    """Return the errors that make a pod's subresource unavailable; upstream reports only these errors."""
    if subresource == "resize":
        return refuse_resize(before, new, features)
    if subresource == "ephemeralcontainers" and MIRROR in (before["metadata"].get("annotations") or {}):
        return [forbidden(WHOLE, "static pods do not support ephemeral containers")]
    return []


def _annotation_faults(before: Raw, new: Raw, subresource: Subresource) -> list[FieldError]:
    """Return the errors in a pod's annotations.

    The annotations are checked against the spec and, except in a resize, against the old annotations.
    """
    old, annotations = (raw["metadata"].get("annotations") or {} for raw in (before, new))
    path, found, changes = "metadata.annotations", list[FieldError](), list[FieldError]()
    validate_pod_annotations(annotations, new["spec"], path, found, old)
    if subresource == "resize":
        return found
    validate_annotation_changes(old, annotations, path, changes)
    return [*found, *changes, *found]  # upstream reports these errors twice
