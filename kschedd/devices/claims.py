"""ResourceClaims as the allocator reads them: requests, subrequests, constraints.

Source: Kubernetes v1.34, api/resource/v1/types.go and defaults.go; dynamic-resource-allocation/resourceclaim/claim.go.
Errors: ClaimError, with kube-scheduler's messages.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.errors import KscheddError

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
MOST_DEVICES: Final = 32  # maximum number of devices per claim (AllocationResultsMaxSize)


@attrs.define(eq=False)
class ClaimError(KscheddError):
    """The error for a pod's claim that does not exist, is not owned by the pod, or is unusable."""

    why: str


@attrs.frozen(eq=False)
class DeviceSubRequest:
    """One exact request, or one subrequest of a prioritized list."""

    name: str
    device_class: str
    selectors: tuple[Raw, ...]
    mode: str  # ExactCount or All
    count: int
    admin_access: bool
    asks_admin_access: bool  # True if the field adminAccess is set, even to false
    tolerations: tuple[Raw, ...]
    states_capacity: bool = False
    capacity: Mapping[str, str] = attrs.field(factory=dict)  # capacities requested from each device

    @classmethod
    def read(cls, name: str, raw: Raw, *, alternative: bool) -> "DeviceSubRequest":
        count = raw.get("count")
        return cls(
            name,
            raw.get("deviceClassName") or "",
            tuple(raw.get("selectors") or ()),
            raw.get("allocationMode") or "ExactCount",
            1 if count is None else count,
            not alternative and bool(raw.get("adminAccess")),
            not alternative and raw.get("adminAccess") is not None,
            tuple(raw.get("tolerations") or ()),
            raw.get("capacity") is not None,
            {name: str(amount) for name, amount in ((raw.get("capacity") or {}).get("requests") or {}).items()},
        )


@attrs.frozen(eq=False)
class DeviceRequest:
    name: str
    # one subrequest for an exact request; empty for an unknown type of request
    subrequests: tuple[DeviceSubRequest, ...]
    prioritised: bool  # True if `subrequests` are alternatives, in order of preference

    def full_name(self, subrequest: DeviceSubRequest) -> str:
        return f"{self.name}/{subrequest.name}" if self.prioritised else self.name


@attrs.frozen(eq=False)
class Claim:
    obj: Object
    requests: tuple[DeviceRequest, ...]
    constraints: tuple[Raw, ...]
    config: tuple[Raw, ...]

    def __str__(self) -> str:
        return self.obj.key


def read_claim(obj: Object) -> Claim:
    devices = obj.spec.get("devices") or {}
    return Claim(
        obj,
        tuple(_request(raw) for raw in devices.get("requests") or ()),
        tuple(devices.get("constraints") or ()),
        tuple(devices.get("config") or ()),
    )


def _request(raw: Raw) -> DeviceRequest:
    name = raw.get("name") or ""
    exactly = raw.get("exactly")
    if exactly is not None:
        return DeviceRequest(name, (DeviceSubRequest.read(name, exactly, alternative=False),), False)
    alternatives = raw.get("firstAvailable") or ()
    return DeviceRequest(
        name, tuple(DeviceSubRequest.read(a.get("name") or "", a, alternative=True) for a in alternatives), True
    )


# -- a pod's claims -------------------------------------------------------------------------------------------


def generated_claim(pod: Pod, pod_claim: str) -> tuple[bool, str | None]:
    """Return whether the entry's template was processed, and the name of the generated claim (None: not needed)."""
    for status in pod.status.get("resourceClaimStatuses") or ():
        if status.get("name") == pod_claim:
            return True, status.get("resourceClaimName")
    return False, None


def claim_name(pod: Pod, entry: Raw) -> tuple[str | None, bool]:
    """Return the claim name of an entry (None: no claim is needed), and whether the pod must own the claim."""
    if entry.get("resourceClaimName") is not None:
        return entry["resourceClaimName"], False
    if entry.get("resourceClaimTemplateName") is not None:
        known, name = generated_claim(pod, entry.get("name") or "")
        if known:
            return name, True
        raise ClaimError(f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet')
    raise ClaimError(
        f'pod "{pod.namespace}/{pod.name}", spec.resourceClaim "{entry.get("name") or ""}": '
        "none of the supported fields are set"
    )


def pod_claims(pod: Pod, claims: Mapping[str, Object], *, owner_word: str = "pod") -> list[Object]:
    """Return the pod's claims in the order of its spec; raise ClaimError for the first unusable claim.

    `owner_word` is the word for the pod in the message about an owner.
    """
    found = []
    for entry in pod.pod_spec.raw.get("resourceClaims") or ():
        name, must_own = claim_name(pod, entry)
        if name is None:
            continue
        claim = claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.deleting:
            raise ClaimError(f'resourceclaim "{claim.name}" is being deleted')
        if must_own and not controlled_by(claim, pod):
            raise ClaimError(
                f"ResourceClaim {claim.namespace}/{claim.name} was not created for {owner_word} "
                f"{pod.namespace}/{pod.name} ({owner_word} is not owner)"
            )
        found.append(claim)
    return found


def controlled_by(claim: Object, pod: Pod) -> bool:
    owner = claim.owner
    return owner is not None and owner.uid == pod.uid


def allocation(claim: Object) -> Raw | None:
    found: Raw | None = claim.status.get("allocation")
    return found


def reserved_for(claim: Object) -> tuple[Raw, ...]:
    return tuple(claim.status.get("reservedFor") or ())


def is_reserved_for(claim: Object, pod: Pod) -> bool:
    return any(consumer.get("uid") == pod.uid for consumer in reserved_for(claim))


def consumer(pod: Pod) -> dict[str, Any]:
    """Return the pod's entry for a claim's `status.reservedFor`."""
    return {"resource": "pods", "name": pod.name, "uid": pod.uid}
