"""Deletion of objects: immediately, or in two steps (a deletionTimestamp is set, and the object is removed later).

A bound, non-terminal pod keeps running for its grace period, until its kubelet deletes it with grace period 0. An
object with finalizers remains until the last finalizer is removed. A namespace remains until it is empty.
Source: Kubernetes v1.34, apiserver/pkg/registry/rest/delete.go (BeforeDelete), pkg/registry/core/pod/strategy.go
(CheckGracefulDelete), pkg/registry/core/namespace.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.schemas.fields import invalid
from kschedd.api.text.times import duration_s, seconds, stamp
from kschedd.registry.strategy import next_generation
from kschedd.store.errors import Invalid, PreconditionFailed

Propagation = Literal["", "Background", "Foreground", "Orphan"]
"""Treatment of dependents; "" if the request leaves it to the object's finalizers or the default of its kind."""
FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_FINALIZER: Final[Mapping[str, str]] = {"Foreground": FOREGROUND, "Orphan": ORPHAN}
_ORPHANING: Final = frozenset(("Job", "ReplicationController"))  # dependents of these kinds are orphaned by default


def check_delete_preconditions(obj: Object, uid: str | None, resource_version: int | str | None) -> None:
    """Raise PreconditionFailed if the request's uid or resourceVersion differs from the object's."""
    if uid is not None and uid != obj.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({obj.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise PreconditionFailed(obj.kind, obj.name, why)
    if resource_version is not None and str(resource_version) != str(obj.resource_version):
        why = (
            f"the ResourceVersion in the precondition ({resource_version}) does not match the ResourceVersion in "
            f"record ({obj.resource_version}). The object might have been modified"
        )
        raise PreconditionFailed(obj.kind, obj.name, why)


def check_grace_period(requested: int | None) -> None:
    """Raise Invalid if the grace period of a delete request is not a 64-bit integer."""
    if requested is not None and not -(2**63) <= requested < 2**63:
        wrong = invalid("gracePeriodSeconds", requested, "must be a 64-bit integer")
        raise Invalid("DeleteOptions", "", (wrong,))


def grace_of(obj: Object, requested: int | None) -> int:
    """Return the object's grace period in seconds; `requested` is the grace period in the delete request, if any."""
    if not isinstance(obj, Pod) or not obj.node_name or obj.finished:
        return 0
    grace = requested if requested is not None else obj.pod_spec.raw.get("terminationGracePeriodSeconds")
    if grace is None:
        return 0
    return int(grace) if grace >= 0 else 1


def marked(obj: Object, now: float) -> dict[str, Any]:
    """Return the object as in its last event before an immediate removal: marked as deleting, with grace period 0."""
    meta = {**obj.metadata, "deletionGracePeriodSeconds": 0}
    if not obj.deleting:
        meta["deletionTimestamp"] = stamp(now)
        if meta.get("generation"):
            meta["generation"] = next_generation(meta)
    return {**obj.raw, "metadata": meta}


def marked_pod(pod: Pod, now: float, version: int) -> Pod:
    """Return the last version of a pod that is removed without having been marked as deleting."""
    raw = marked(pod, now)
    raw["metadata"]["resourceVersion"] = str(version)
    return Pod(
        pod.kind,
        pod.name,
        pod.namespace,
        pod.uid,
        version,
        pod.labels,
        raw,
        pod.signature,
        pod.node_name,
        pod.nominated_node_name,
        pod.phase,
        pod.start_time,
        raw["metadata"]["deletionTimestamp"],
    )


def begin_deletion(obj: Object, requested: int | None, propagation: Propagation, now: float) -> dict[str, Any] | None:
    """Return the object with its deletionTimestamp set, or None if the object can be removed immediately.

    An object that is already being deleted may be returned unchanged, or with a shorter grace period.
    """
    raw = obj.raw
    grace = grace_of(obj, requested)
    if not (grace or obj.deleting or obj.kind == "Namespace" or _finalizers(obj, propagation)):
        return None  # fast path for most pods; the code below would have the same result
    meta = dict(obj.metadata)
    if not _pending(obj, requested, grace):
        finalizers = _finalizers(obj, propagation)
        if set(finalizers) != set(meta.get("finalizers") or ()):
            meta["finalizers"] = finalizers
            if not finalizers:
                del meta["finalizers"]
    if "deletionTimestamp" in meta:
        before = meta.get("deletionGracePeriodSeconds") or 0
        if requested is None and before > 0 and not (isinstance(obj, Pod) and obj.finished):
            grace = before
        if grace < before:
            # the old and the new grace period begin at the start of the deletion
            began = seconds(meta["deletionTimestamp"]) - duration_s(before)
            meta["deletionTimestamp"] = stamp(max(now, began) if grace == 0 else began + duration_s(grace))
            meta["deletionGracePeriodSeconds"] = grace
    else:
        meta["deletionTimestamp"] = stamp(now + duration_s(grace))
        meta["deletionGracePeriodSeconds"] = grace
        if meta.get("generation"):
            meta["generation"] = next_generation(meta)
    changed: dict[str, Any] = {**raw, "metadata": meta}
    if obj.kind == "Namespace":
        meta.pop("deletionGracePeriodSeconds", None)  # a namespace waits for its contents, not for a grace period
        changed["status"] = {**(raw.get("status") or {}), "phase": "Terminating"}
    return None if finished(obj.kind, changed) else changed


def _pending(obj: Object, requested: int | None, grace: int) -> bool:
    """Return whether the object is already being deleted and the request does not shorten its grace period.

    If so, the finalizers do not change.
    """
    if not obj.deleting:
        return False
    if obj.kind == "Namespace":
        return bool((obj.raw.get("spec") or {}).get("finalizers"))
    left = obj.metadata.get("deletionGracePeriodSeconds")
    return isinstance(obj, Pod) and left is not None and (requested is None or grace >= left)


def _finalizers(obj: Object, propagation: Propagation) -> list[str]:
    """Return the object's finalizers; the only propagation finalizer is the one that the delete request requires."""
    present = obj.metadata.get("finalizers") or ()
    if propagation:
        wanted = _FINALIZER.get(propagation)
    else:
        by_kind = ORPHAN if obj.kind in _ORPHANING else None
        wanted = next((each for each in present if each in (ORPHAN, FOREGROUND)), by_kind)
    kept = [each for each in present if each not in (ORPHAN, FOREGROUND)]
    return kept if wanted is None else [*kept, wanted]


def finished(kind: str, raw: Raw) -> bool:
    """Return whether a deleting object can be removed: it has no finalizers and no grace period left."""
    meta = raw.get("metadata") or {}
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if kind == "Namespace" and (raw.get("spec") or {}).get("finalizers"):
        return False
    return not meta.get("deletionGracePeriodSeconds")
