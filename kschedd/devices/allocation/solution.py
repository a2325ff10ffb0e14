"""The result of an allocation: the devices of each claim on a node, or the reason why it cannot be computed."""

import attrs

from kschedd.devices.claims import DeviceRequest, DeviceSubRequest
from kschedd.devices.pools.capacity import Amounts
from kschedd.devices.pools.inventory import Device
from kschedd.errors import KscheddError


@attrs.define(eq=False)
class AllocationError(KscheddError):
    """An error in a claim or a device class, which is the same on all nodes."""

    why: str


@attrs.define(eq=False)
class NodeFailure(KscheddError):
    """An error on one node, which does not affect other nodes."""

    why: str


@attrs.define(eq=False)
class AllocationTimeout(NodeFailure):
    """The search for devices on this node took too many steps."""


@attrs.frozen(eq=False)
class AllocatedDevice:
    """One device allocated to one request of a claim."""

    request: DeviceRequest
    subrequest: DeviceSubRequest
    device: Device
    share: Amounts | None = None  # consumed amounts, if the device is allocated in shares
    counted: bool = False  # True if the device consumes counters of its pool


@attrs.frozen(eq=False)
class Allocation:
    """The devices of each claim in allocation order, and the chosen subrequest of each request."""

    given: tuple[tuple[AllocatedDevice, ...], ...]
    chosen: tuple[tuple[DeviceSubRequest, ...], ...]
