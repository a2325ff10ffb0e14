"""The result of an allocation: the devices of each claim on a node, or the reason why it cannot be computed."""

import attrs

from kschedd.devices.claims import DeviceRequest, DeviceSubRequest
from kschedd.devices.pools.capacity import Amounts
from kschedd.devices.pools.inventory import Device
from kschedd.errors import KscheddError


@attrs.define(eq=False)
class AllocationError(KscheddError):
    """An error in a claim or device class, independent of the node."""

    why: str


@attrs.define(eq=False)
class NodeFailure(KscheddError):
    """A node that cannot be evaluated; other nodes can be."""

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
    share: Amounts | None = None  # consumed amounts of a device that is allocated in shares
    counted: bool = False  # True if the device consumes counters of its pool


@attrs.frozen(eq=False)
class Allocation:
    """For each claim: its devices in allocation order, and the subrequest that was satisfied for each request."""

    given: tuple[tuple[AllocatedDevice, ...], ...]
    chosen: tuple[tuple[DeviceSubRequest, ...], ...]
