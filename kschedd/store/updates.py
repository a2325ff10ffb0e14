"""Updates: which parts of an object a request may change, and what the store keeps as it was.

A plain update leaves the status alone, a status update leaves all else alone; identity (uid, creation, deletion) is
never up to the caller. Of a pod's spec little may change once it is there.
Source: Kubernetes v1.34, the strategies in pkg/registry and ValidatePodUpdate in apis/core/validation.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from kschedd.api.fields import FieldError, forbidden, invalid
from kschedd.api.objects import Object, Raw
from kschedd.store.errors import Conflict, Invalid

Subresource = Literal["", "status", "resize"]

WITH_STATUS: Final = frozenset(
    "Namespace Node Pod Service ReplicationController ResourceQuota PersistentVolume PersistentVolumeClaim ReplicaSet"
    " Deployment StatefulSet DaemonSet Job CronJob PodDisruptionBudget VolumeAttachment ResourceClaim Ingress"
    " HorizontalPodAutoscaler".split()
)
"""Kinds whose status is a subresource."""

WITH_GENERATION: Final = frozenset(
    "Pod ReplicationController ReplicaSet Deployment StatefulSet DaemonSet Job CronJob PodDisruptionBudget"
    " DeviceClass".split()
)
"""Kinds whose metadata.generation counts the changes of what is asked of them."""

_IMMUTABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "Deployment": ("spec.selector",),
    "ReplicaSet": ("spec.selector",),
    "StatefulSet": ("spec.selector", "spec.serviceName", "spec.podManagementPolicy"),
    "DaemonSet": ("spec.selector",),
    "Job": ("spec.selector", "spec.completionMode"),
    "PriorityClass": ("value", "preemptionPolicy"),
    "RuntimeClass": ("handler",),
    "StorageClass": ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec",),
}

_IDENTITY: Final = (
    "name",
    "namespace",
    "generateName",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)

_POD_MUTABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_RESIZE_MUTABLE: Final = "only cpu and memory resources are mutable"


def check_preconditions(old: Object, meta: Raw) -> None:
    """Raise Conflict if the caller speaks of another version, or another object of the same name."""
    check_resource_version(old, meta)
    uid = meta.get("uid")
    if uid and uid != old.uid:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}"
        raise Conflict(old.kind, old.name, why)


def check_resource_version(old: Object, meta: Raw) -> None:
    """Raise Conflict if the caller speaks of another version."""
    version = meta.get("resourceVersion")
    if version and str(version) != str(old.resource_version):
        raise Conflict(old.kind, old.name)


def requested(old: Object, raw: Raw, subresource: Subresource, *, with_status: bool) -> dict[str, Any]:
    """What the object would be: from `raw` the part that this request may change, from `old` the rest."""
    if subresource == "status":
        changed = dict(old.raw)
        status = raw.get("status")
        if status is None:
            changed.pop("status", None)
            return changed
        if old.kind == "Pod" and isinstance(status, Mapping) and "qosClass" not in status:
            status = {**status, "qosClass": old.status.get("qosClass")}
        changed["status"] = status
        return changed
    if subresource == "resize":
        return {**old.raw, "spec": raw.get("spec") or {}}
    before = old.metadata
    meta = {name: value for name, value in (raw.get("metadata") or {}).items() if name not in _IDENTITY}
    meta.update((name, before[name]) for name in _IDENTITY if name in before)
    changed = {**raw, "metadata": meta}
    changed.setdefault("apiVersion", old.raw.get("apiVersion"))
    if old.kind in WITH_STATUS and not with_status:
        changed.pop("status", None)
        if "status" in old.raw:
            changed["status"] = old.raw["status"]
    if "deletionTimestamp" in before:
        present = before.get("finalizers") or ()
        added = [f for f in meta.get("finalizers") or () if f not in present]
        if added:
            shown = ", ".join(f'"{f}"' for f in added)
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers [{shown}]"
            raise Invalid(old.kind, old.name, (forbidden("metadata.finalizers", why),))
    return changed


def asked_more(old: Raw, new: Raw) -> bool:
    """Whether anything but metadata and status differs, so that the generation grows."""
    aside = ("metadata", "status")
    return any(old.get(name) != new.get(name) for name in {*old, *new} if name not in aside)


def check_immutable(old: Object, new: Raw, subresource: Subresource) -> None:
    """Raise Invalid if the request changes what may not change."""
    if old.kind == "Pod":
        faults = _pod_faults(old.raw["spec"], new["spec"], subresource)
    else:
        faults = tuple(
            invalid(path, _at(new, path), "field is immutable")
            for path in _IMMUTABLE.get(old.kind, ())
            if _at(old.raw, path) != _at(new, path)
        )
    if faults:
        raise Invalid(old.kind, old.name, faults)


def _at(raw: Raw, path: str) -> Any:
    found: Any = raw
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _without(containers: Any, field: str) -> list[Any]:
    return [{name: value for name, value in c.items() if name != field} for c in containers or ()]


def _pod_faults(old: Raw, new: Raw, subresource: Subresource) -> tuple[FieldError, ...]:
    """Source: ValidatePodUpdate and ValidatePodResize. What is left after the allowed changes must be equal."""
    if old == new:
        return ()
    rest = dict(new)
    if subresource == "resize":
        for field in ("containers", "initContainers"):
            if field in old and _without(_without(new.get(field), "resources"), "resizePolicy") == _without(
                _without(old[field], "resources"), "resizePolicy"
            ):
                rest[field] = old[field]
        return () if rest == old else (forbidden("spec", _RESIZE_MUTABLE),)
    faults: list[FieldError] = []
    for field in ("containers", "initContainers"):
        if field in old and _without(new.get(field), "image") == _without(old[field], "image"):
            rest[field] = old[field]
    deadline, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if deadline != before:
        if before is not None and (deadline is None or deadline > before):
            why = f"must be less than or equal to previous value {before}"
            faults.append(invalid("spec.activeDeadlineSeconds", deadline, why))
        _put(rest, old, "activeDeadlineSeconds")
    tolerations = new.get("tolerations") or []
    if not all(_kept(toleration, tolerations) for toleration in old.get("tolerations") or ()):
        why = "existing toleration can not be modified except its tolerationSeconds"
        faults.append(forbidden("spec.tolerations", why))
    _put(rest, old, "tolerations")
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        _put(rest, old, "terminationGracePeriodSeconds")
    gates, gated = new.get("schedulingGates") or [], old.get("schedulingGates") or []
    if any(gate not in gated for gate in gates):
        names = ", ".join(gate.get("name", "") for gate in gates if gate not in gated)
        why = f"only deletion is allowed, but found new scheduling gate '{names}'"
        faults.append(forbidden("spec.schedulingGates", why))
    _put(rest, old, "schedulingGates")
    if gated:
        selector, before_selector = new.get("nodeSelector") or {}, old.get("nodeSelector") or {}
        if any(selector.get(key) != value for key, value in before_selector.items()):
            why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            faults.append(invalid("spec.nodeSelector", selector, why))
        _put(rest, old, "nodeSelector")
        if new.get("affinity") != old.get("affinity"):
            if _narrowed(old.get("affinity") or {}, new.get("affinity") or {}):
                _put(rest, old, "affinity")
    if rest != old and not faults:
        faults.append(forbidden("spec", _POD_MUTABLE))
    return tuple(faults)


def _kept(toleration: Raw, tolerations: list[Any]) -> bool:
    bare = {name: value for name, value in toleration.items() if name != "tolerationSeconds"}
    return any({n: v for n, v in t.items() if n != "tolerationSeconds"} == bare for t in tolerations)


def _put(rest: dict[str, Any], old: Raw, field: str) -> None:
    if field in old:
        rest[field] = old[field]
    else:
        rest.pop(field, None)


def _narrowed(old: Raw, new: Raw) -> bool:
    """Whether a gated pod's node affinity only grew stricter: each required term keeps what it had, in its place."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if {n: v for n, v in old.items() if n != "nodeAffinity"} != {n: v for n, v in new.items() if n != "nodeAffinity"}:
        return False
    before = ((old.get("nodeAffinity") or {}).get(required) or {}).get("nodeSelectorTerms")
    after = ((new.get("nodeAffinity") or {}).get(required) or {}).get("nodeSelectorTerms")
    if not before:
        return True
    if not after or len(after) != len(before):
        return False
    for then, now in zip(before, after, strict=True):
        for field in ("matchExpressions", "matchFields"):
            had = then.get(field) or []
            if (now.get(field) or [])[: len(had)] != had:
                return False
    return True
