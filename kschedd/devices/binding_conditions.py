"""Binding conditions: whether the devices of an allocated claim are ready, so that the pod can be bound.

A device with binding conditions (for example, one that must be attached to its node) is ready when all of them are true
in the claim's `status.devices`. The device has failed if any of its failure conditions is true. The device has timed
out if it is not ready some time after `allocationTimestamp`.

Source: Kubernetes v1.36, scheduler plugins/dynamicresources/dynamicresources.go (isClaimReadyForBinding,
isClaimTimeout, hasBindingConditions).
"""

from collections.abc import Iterator

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.text.times import seconds
from kschedd.devices.claims import allocation
from kschedd.errors import KscheddError


@attrs.define(eq=False)
class BindingFailure(KscheddError):
    """A failure condition of the claim's devices is true."""

    why: str


def has_binding_conditions(allocated: Raw | None) -> bool:
    """Return whether a device of this allocation has binding conditions."""
    return next(_results(allocated), None) is not None


def ready_for_binding(claim: Object) -> bool:
    """Return whether all binding conditions of an allocated claim are true; raises BindingFailure."""
    for result in _results(allocation(claim)):
        conditions = _conditions(claim, result)
        if conditions is None:
            return False
        for name in result.get("bindingFailureConditions") or ():
            failed = conditions.get(name)
            if failed is not None and failed.get("status") == "True":
                reason, message = failed.get("reason") or "", failed.get("message") or ""
                raise BindingFailure(f'claim {claim.name} binding failed: reason={reason}, message="{message}"')
        if any(conditions.get(name, {}).get("status") != "True" for name in result["bindingConditions"]):
            return False
    return allocation(claim) is not None


def binding_deadline_s(claim: Object, timeout_s: float) -> float | None:
    """Return the time at which the wait for a claim's devices ends (seconds since the epoch), or None."""
    allocated = allocation(claim) or {}
    allocated_at = allocated.get("allocationTimestamp")
    return seconds(allocated_at) + timeout_s if allocated_at and has_binding_conditions(allocated) else None


def _results(allocated: Raw | None) -> Iterator[Raw]:
    """Yield the devices with binding conditions."""
    for result in ((allocated or {}).get("devices") or {}).get("results") or ():
        if result.get("bindingConditions"):
            yield result


def _conditions(claim: Object, result: Raw) -> dict[str, Raw] | None:
    """Return the conditions of a device by type; None if the claim's status lacks the device."""
    for device in claim.status.get("devices") or ():
        if all(device.get(field) == result.get(field) for field in ("driver", "pool", "device")):
            return {one.get("type") or "": one for one in device.get("conditions") or ()}
    return None
