"""Writes of DynamicResources: allocations and reservations before binding, and the writes that undo them.

Source: Kubernetes v1.34 and v1.36, plugins/dynamicresources/dynamicresources.go (bindClaim, isPodReadyForBinding),
extendeddynamicresources.go (createExtendedResourceClaimInAPI, patchPodExtendedResourceClaimStatus, deleteClaim).
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.devices.binding_conditions import BindingFailure, binding_deadline_s, ready_for_binding
from kschedd.devices.claims import FINALIZER, allocation, consumer, is_reserved_for, reserved_for
from kschedd.devices.extended_resources import IN_MEMORY, NodeClaim
from kschedd.framework.status import Code, Status, error
from kschedd.framework.writes import Create, Delete, MergePatch, Write
from kschedd.store.writes import patch_of, status_of

_SUCCESS: Final = Status(Code.SUCCESS)
_LONGEST_BASE: Final = 58  # length of a generateName


def bound(claim: Object, kept: Raw | None, reserved: Sequence[Raw], at: str) -> list[Write]:
    """Return the writes that set the claim's allocation, if it is new, and its reservations.

    If an existing allocation has no time, `at` is set as its time; "" sets no time.
    """
    writes: list[Write] = []
    fields: dict[str, Any] = {"reservedFor": list(reserved)}
    known = allocation(claim)
    if kept is not None:
        finalizers: Sequence[str] = claim.metadata.get("finalizers") or ()
        if FINALIZER not in finalizers:
            writes.append(patch_of(claim, {"metadata": {"finalizers": [*finalizers, FINALIZER]}}))
        fields["allocation"] = kept
    elif at and known is not None and not known.get("allocationTimestamp"):
        fields["allocation"] = {**known, "allocationTimestamp": at}
    # An allocation requires an unchanged claim; a reservation does not, because other pods may reserve the claim
    # meanwhile.
    writes.append(status_of(claim, fields, guarded=kept is not None))
    return writes


def name_to_create(claim: Object, pod: Pod) -> str:
    """Return the name of the claim for the pod's extended resources.

    The name is deterministic, unlike upstream's random name.
    """
    if claim.name != IN_MEMORY:
        return claim.name
    base = f"{pod.name}-extended-resources-"[:_LONGEST_BASE]
    return base + sha256(f"{pod.uid}/{pod.resource_version}".encode()).hexdigest()[:5]


def created(claim: NodeClaim, pod: Pod, kept: Raw) -> list[Write]:
    """Return the writes that create the claim for extended resources with its allocation, and record it in the pod."""
    name = name_to_create(claim.obj, pod)
    unset = ("uid", "generateName")
    metadata = {field: value for field, value in claim.obj.metadata.items() if field not in unset}
    made = {**claim.obj.raw, "metadata": {**metadata, "name": name, "finalizers": [FINALIZER]}}
    status = {"allocation": kept, "reservedFor": [consumer(pod)]}
    mappings = [mapping.written() for mapping in claim.mappings]
    of_pod = {"extendedResourceClaimStatus": {"resourceClaimName": name, "requestMappings": mappings}}
    return [
        Create(made),
        MergePatch("ResourceClaim", pod.namespace, name, {"status": status}, "status"),
        MergePatch("Pod", pod.namespace, pod.name, {"metadata": {"uid": pod.uid}, "status": of_pod}, "status"),
    ]


def released(claim: Object, pod: Pod, *, reserved: bool) -> list[Write]:
    """Return the writes that remove the claim's reservation for the pod.

    With `reserved`, the reservation was already written, although this version of the claim may not contain it yet.
    """
    if not reserved and not is_reserved_for(claim, pod):
        return []
    left = [entry for entry in reserved_for(claim) if entry.get("uid") != pod.uid]
    return [status_of(claim, {"reservedFor": left or None})]


def deallocated(claim: Object) -> list[Write]:
    return [status_of(claim, {"allocation": None, "reservedFor": None, "devices": None}, guarded=True)]


def deleted(claim: Object) -> list[Write]:
    """Return the writes that delete the claim, including its finalizer."""
    finalizers: Sequence[str] = claim.metadata.get("finalizers") or ()
    gone: list[Write] = [Delete(claim.kind, claim.namespace, claim.name, claim.uid)]
    if FINALIZER not in finalizers:
        return gone
    left = [one for one in finalizers if one != FINALIZER]
    return [patch_of(claim, {"metadata": {"finalizers": left or None}}), *gone]


def devices_ready(
    keys: Sequence[str], timeout_s: float, now_s: Callable[[], float]
) -> Callable[[SchedulerCache], Status | None]:
    """Return a function for a plan that checks the binding conditions of these claims.

    The function returns a status after all conditions are true or one has failed.
    """

    def ready(cluster: SchedulerCache) -> Status | None:
        for key in keys:
            claim = cluster.get("ResourceClaim", key)
            if claim is None or allocation(claim) is None:
                return None  # the watch lags behind
            try:
                if ready_for_binding(claim):
                    continue
            except BindingFailure as failure:
                return error(str(failure))
            late = binding_deadline_s(claim, timeout_s)
            return error(f"claim {claim.name} binding timeout") if late is not None and late < now_s() else None
        return _SUCCESS

    return ready
