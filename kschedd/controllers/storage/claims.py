"""The ResourceClaim controller: generates pods' claims from templates, and releases unused claims.

For a pod that names a ResourceClaimTemplate, the controller creates a claim owned by the pod, and records the name of
the claim in the pod's status. The scheduler waits until the name is in the status. A pod that terminated, was deleted,
or will never run is removed from `reservedFor`. A claim without reservations loses its allocation, which frees its
devices, and then its finalizer. The generated claim of a pod that will not run is deleted. Claims of deleted pods are
garbage-collected through their owner references (`garbage`). If a pod was bound without the scheduler, this controller
reserves the pod's allocated claims for it. If the creation of a claim is rejected, for example by a quota, the
controller retries after a delay.

Source: Kubernetes v1.34, controller/resourceclaim/controller.go. If a template is missing, kube-controller-manager
retries after a delay; kschedd retries when the template is created.
"""

from collections.abc import Container, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.controllers.object_events import object_event
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.controllers.templates import controller_reference
from kschedd.controllers.workloads.backoff import CreateBackoff
from kschedd.controllers.workloads.ownership import Key
from kschedd.devices.claims import (
    FINALIZER,
    ClaimError,
    allocation,
    claim_name,
    consumer,
    controlled_by,
    generated_claim,
    is_reserved_for,
    reserved_for,
)
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, NotFound
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Create, Delete, Write, patch_of, status_of

POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
COMPONENT: Final = "resource_claim"
_LONGEST_BASE: Final = 57  # maximum length of generateName, because the name with five random characters has at most 63
_NOTHING: Final[Raw] = {}


def wanted_claims(pod: Pod) -> tuple[Raw, ...]:
    return tuple(pod.pod_spec.raw.get("resourceClaims") or ())


def is_done(pod: Pod) -> bool:
    """Return whether the pod is not running and will never run."""
    return pod.finished or bool(pod.deletion_timestamp and not pod.node_name)


class ResourceClaims:
    name: Final = "resource-claims"
    kinds: Final = frozenset(("Pod", "ResourceClaim", "ResourceClaimTemplate"))

    def __init__(self) -> None:
        self._later: Timers[Key] = Timers()  # pods with a rejected claim: time of the next attempt
        self._backoff = CreateBackoff(self._later)
        self._reported: set[tuple[str, str]] = set()  # (pod uid, entry name) of failures that were reported as an Event
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._later.next

    def concerns(self, event: WatchEvent) -> bool:
        return not isinstance(event.new, Pod) or bool(wanted_claims(event.new))

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        pods: dict[tuple[str, str], None] = {key[1:]: None for key in self._later.due(now)}
        claims: dict[tuple[str, str], None] = {}
        released: set[str] = set()
        for event in events:
            obj = event.new
            if isinstance(obj, Pod):
                if wanted_claims(obj):
                    self._after_pod(obj, event, pods, claims)
            elif obj.kind == "ResourceClaimTemplate":
                if event.type != DELETED:
                    pods.update(dict.fromkeys(self._waiting_for(obj, view)))
            else:
                claims[obj.namespace, obj.name] = None
                owner = obj.owner
                if owner is not None and owner.kind == "Pod":
                    pods[obj.namespace, owner.name] = None
                if event.old is not None and allocation(event.old) is not None and allocation(obj) is None:
                    released.add(obj.uid)
        writes = self.faults.each("Pod", pods, partial(self._look_at, view), now)
        return writes + self.faults.each("ResourceClaim", claims, partial(_look_at_claim, view, released), now)

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        pod = view.find("Pod", namespace, name)
        if not isinstance(pod, Pod) or pod.deletion_timestamp or pod.finished:
            self._backoff.clear(("Pod", namespace, name))
            return []
        return self._serve(pod, view, now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Report a rejected claim as an Event on its pod, and retry; other rejections are followed by an event."""
        if not isinstance(write, Create) or write.raw.get("kind") != "ResourceClaim":
            return []
        meta = write.raw["metadata"]
        owner = meta["ownerReferences"][0]
        pod = view.find("Pod", meta["namespace"], owner["name"])
        entry = meta["annotations"][POD_CLAIM]
        if pod is None or pod.uid != owner["uid"]:
            return []
        self._backoff.refused(("Pod", pod.namespace, pod.name), now)
        if (pod.uid, entry) in self._reported:
            return []
        self._reported.add((pod.uid, entry))
        return [_failure(pod, entry, f"create ResourceClaim : {error}", now)]

    def _after_pod(
        self,
        pod: Pod,
        event: WatchEvent,
        pods: dict[tuple[str, str], None],
        claims: dict[tuple[str, str], None],
    ) -> None:
        if event.type == DELETED or is_done(pod):
            self._reported = {reported for reported in self._reported if reported[0] != pod.uid}
            for entry in wanted_claims(pod):
                try:
                    name, _ = claim_name(pod, entry)
                except ClaimError:
                    continue  # the claim was never generated
                if name is not None:
                    claims[pod.namespace, name] = None
        if event.type != DELETED:
            pods[pod.namespace, pod.name] = None

    def _waiting_for(self, template: Object, view: View) -> list[tuple[str, str]]:
        """Return the pods whose claims are generated from this template."""
        found = []
        for pod in view.list("Pod", template.namespace):
            assert isinstance(pod, Pod), "an object of kind Pod is expected to be a Pod"
            for entry in wanted_claims(pod):
                if entry.get("resourceClaimTemplateName") == template.name:
                    self._reported.discard((pod.uid, entry.get("name") or ""))
                    found.append((pod.namespace, pod.name))
        return found

    # -- claims for a pod -------------------------------------------------------------------------------------

    def _serve(self, pod: Pod, view: View, now: float) -> list[Write]:
        """Create missing claims, record created claims in the pod's status, and reserve the claims of a bound pod."""
        writes: list[Write] = []
        made: dict[str, str] = {}
        for entry in wanted_claims(pod):
            if entry.get("resourceClaimTemplateName") is None:
                continue
            name = entry.get("name") or ""
            known, noted = generated_claim(pod, name)
            if known and (noted is None or view.find("ResourceClaim", pod.namespace, noted) is not None):
                continue  # created, not needed, or owned by another object, which the scheduler reports
            existing = _generated_for(pod, name, view)
            if existing is None:
                writes += self._make(pod, entry, view, now)
            elif existing.name != noted:
                made[name] = existing.name
                self._backoff.clear(("Pod", pod.namespace, pod.name))
        if made:
            before = pod.status.get("resourceClaimStatuses") or ()
            statuses = [status for status in before if status.get("name") not in made]
            statuses += [{"name": name, "resourceClaimName": claim} for name, claim in made.items()]
            writes.append(status_of(pod, {"resourceClaimStatuses": statuses}))
        if pod.node_name:
            writes += _reservations(pod, view)
        return writes

    def _make(self, pod: Pod, entry: Raw, view: View, now: float) -> list[Write]:
        name, template_name = entry.get("name") or "", entry["resourceClaimTemplateName"]
        template = view.find("ResourceClaimTemplate", pod.namespace, template_name)
        if template is not None:
            return [Create(_claim(pod, name, template.spec))]
        if (pod.uid, name) in self._reported:
            return []
        self._reported.add((pod.uid, name))
        missing = NotFound("ResourceClaimTemplate", template_name)
        return [_failure(pod, name, f'resource claim template "{template_name}": {missing}', now)]


def _failure(pod: Object, entry: str, why: str, now: float) -> Create:
    message = f"PodResourceClaim {entry}: {why}"
    return object_event(pod, "FailedResourceClaimCreation", message, COMPONENT, now, warning=True)


def _generated_for(pod: Pod, entry: str, view: View) -> Object | None:
    """Return the claim generated for this entry of the pod, even if the pod's status does not contain it yet."""
    for claim in view.owned_by(pod.uid):
        if claim.kind == "ResourceClaim" and controlled_by(claim, pod) and claim.annotations.get(POD_CLAIM) == entry:
            return claim
    return None


def generated_base(pod: str, entry: str) -> str:
    """Return the generateName of a claim; both parts of a long name are truncated in proportion."""
    base = f"{pod}-{entry}-"
    if len(base) <= _LONGEST_BASE:
        return base
    return f"{pod[: len(pod) * _LONGEST_BASE // len(base)]}-{entry[: len(entry) * _LONGEST_BASE // len(base)]}"


def _claim(pod: Pod, entry: str, template: Raw) -> dict[str, Any]:
    meta = template.get("metadata") or _NOTHING
    wanted: dict[str, Any] = {
        "generateName": generated_base(pod.name, entry),
        "namespace": pod.namespace,
        "ownerReferences": [controller_reference(pod)],
        "annotations": {**(meta.get("annotations") or {}), POD_CLAIM: entry},
    }
    if meta.get("labels"):
        wanted["labels"] = meta["labels"]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": wanted,
        "spec": template.get("spec") or {},
    }


def _reservations(pod: Pod, view: View) -> list[Write]:
    writes: list[Write] = []
    for entry in wanted_claims(pod):
        try:
            name, must_own = claim_name(pod, entry)
        except ClaimError:
            continue
        claim = None if name is None else view.find("ResourceClaim", pod.namespace, name)
        if claim is None or (must_own and not controlled_by(claim, pod)):
            continue
        if allocation(claim) is not None and not is_reserved_for(claim, pod):
            writes.append(status_of(claim, {"reservedFor": [*reserved_for(claim), consumer(pod)]}))
    return writes


# -- unused claims --------------------------------------------------------------------------------------------


def _look_at_claim(view: View, released: Container[str], namespace: str, name: str, now: float) -> list[Write]:
    claim = view.find("ResourceClaim", namespace, name)
    return [] if claim is None else _tidy(claim, view, was_released=claim.uid in released)


def _tidy(claim: Object, view: View, *, was_released: bool) -> list[Write]:
    entries = reserved_for(claim)
    if any(entry.get("apiGroup") or entry.get("resource") != "pods" for entry in entries):
        return []  # another controller releases claims that are reserved for objects other than pods
    valid = [entry for entry in entries if _still_uses(entry, claim, view)]
    guarded = FINALIZER in (claim.metadata.get("finalizers") or ())
    writes: list[Write] = []
    if len(valid) < len(entries):
        status: dict[str, Any] = {"reservedFor": valid or None}
        if not valid and guarded:
            status |= {"allocation": None, "devices": None}
        # `exactly`, because the scheduler may be reserving the claim concurrently
        writes.append(patch_of(claim, {"status": status}, "status", exactly=True))
    elif guarded and not valid and allocation(claim) is not None and claim.deleting:
        writes.append(patch_of(claim, {"status": {"allocation": None, "devices": None}}, "status", exactly=True))
    elif guarded and not valid and allocation(claim) is None and (was_released or claim.deleting):
        # The finalizer is removed in a later write than the allocation, because the scheduler adds it first.
        left = [f for f in claim.metadata.get("finalizers") or () if f != FINALIZER]
        writes.append(patch_of(claim, {"metadata": {"finalizers": left or None}}, exactly=True))
    if not valid and not claim.deleting and _owner_is_done(claim, view):
        writes.append(Delete("ResourceClaim", claim.namespace, claim.name, claim.uid))
    return writes


def _still_uses(entry: Raw, claim: Object, view: View) -> bool:
    pod = view.find("Pod", claim.namespace, entry.get("name") or "")
    return isinstance(pod, Pod) and pod.uid == entry.get("uid") and not is_done(pod)


def _owner_is_done(claim: Object, view: View) -> bool:
    """Return whether the claim's owner is a pod that is not running and never will run.

    If the owner no longer exists, garbage collection deletes the claim.
    """
    owner = claim.owner
    if owner is None or owner.kind != "Pod":
        return False
    pod = view.find("Pod", claim.namespace, owner.name)
    return isinstance(pod, Pod) and (pod.uid != owner.uid or is_done(pod))
