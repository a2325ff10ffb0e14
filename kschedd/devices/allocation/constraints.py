"""Constraints on a claim's devices: all have equal (matchAttribute) or different (distinctAttribute) attribute values.

In 1.36.3, `distinctAttribute` stores only the last device of each request, and forgets it when the search returns a
device. Two devices of one request may therefore have equal attribute values. Since 1.37 all devices are compared with
each other.

Source: Kubernetes v1.36, dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
(matchAttributeConstraint); v1.36 and v1.37, constraint.go (distinctAttributeConstraint).
"""

from typing import Any, Protocol

import attrs

from kschedd.api.objects import Raw
from kschedd.devices.claims import DeviceRequest, DeviceSubRequest
from kschedd.devices.pools.inventory import Device
from kschedd.devices.rules import DeviceRules

AttributeValue = tuple[str, Any]
"""The type and value of an attribute."""


class Constraint(Protocol):
    def concerns(self, request: DeviceRequest, subrequest: DeviceSubRequest) -> bool: ...

    def add(self, request: DeviceRequest, device: Device) -> bool:
        """Add the device if the constraint allows it together with the earlier devices; return whether it was added."""

    def remove(self, request: DeviceRequest) -> bool:
        """Remove the last device that was added for the request.

        Return whether the state is the same as before the device was added.
        """

    def state(self) -> Any:
        """Return the state with which further devices are compared."""

    def required(self) -> tuple[str, AttributeValue] | None:
        """Return the attribute value that every further device must have, or None."""


def read_constraint(raw: Raw, rules: DeviceRules) -> Constraint | None:
    """Return the constraint; None if its type is unknown."""
    requests = frozenset(raw.get("requests") or ())
    if raw.get("matchAttribute") is not None:
        return MatchAttribute(requests, raw["matchAttribute"])
    if not rules.capacity_requests_ignored and raw.get("distinctAttribute") is not None:
        made = DistinctDevices if rules.distinct_by_device else DistinctAttribute
        return made(requests, raw["distinctAttribute"])
    return None


@attrs.define(eq=False)
class _OfRequests:
    requests: frozenset[str]  # empty: all
    attribute: str

    def concerns(self, request: DeviceRequest, subrequest: DeviceSubRequest) -> bool:
        requested = self.requests
        return not requested or request.name in requested or request.full_name(subrequest) in requested


@attrs.define(eq=False)
class MatchAttribute(_OfRequests):
    """All devices allocated to these requests must have the same value of the attribute."""

    value: AttributeValue | None = None
    devices: int = 0

    def add(self, request: DeviceRequest, device: Device) -> bool:
        value = device.attribute(self.attribute)
        if value is None:
            return False
        if self.devices == 0:
            self.value = value
        elif value != self.value:
            return False
        self.devices += 1
        return True

    def remove(self, request: DeviceRequest) -> bool:
        self.devices -= 1
        return True

    def state(self) -> Any:
        return self.value if self.devices else None

    def required(self) -> tuple[str, AttributeValue] | None:
        return (self.attribute, self.value) if self.devices and self.value is not None else None


@attrs.define(eq=False)
class DistinctAttribute(_OfRequests):
    """No two requests may have devices with equal values of the attribute."""

    # by request: the attribute value of its last device
    values: dict[str, AttributeValue] = attrs.field(factory=dict)
    devices: int = 0

    def add(self, request: DeviceRequest, device: Device) -> bool:
        value = device.attribute(self.attribute)
        if value is None or (self.devices and value in self.values.values()):
            return False
        self.values[request.name] = value
        self.devices += 1
        return True

    def remove(self, request: DeviceRequest) -> bool:
        self.values.pop(request.name, None)
        self.devices -= 1
        return self.devices == len(self.values)

    def state(self) -> Any:
        return tuple(self.values.items())

    def required(self) -> tuple[str, AttributeValue] | None:
        return None


@attrs.define(eq=False)
class DistinctDevices(_OfRequests):
    """No two devices that the constrained requests get may have equal values of the attribute."""

    values: list[AttributeValue] = attrs.field(factory=list)

    def add(self, request: DeviceRequest, device: Device) -> bool:
        value = device.attribute(self.attribute)
        if value is None or value in self.values:
            return False
        self.values.append(value)
        return True

    def remove(self, request: DeviceRequest) -> bool:
        self.values.pop()
        return True

    def state(self) -> Any:
        return frozenset(self.values)

    def required(self) -> tuple[str, AttributeValue] | None:
        return None
