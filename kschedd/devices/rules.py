"""The rules that devices are allocated by: those of a version of kube-scheduler, under its feature gates.

Each field says what is so where it is true; without any all is as in 1.34.
"""

import attrs


@attrs.frozen(kw_only=True, cache_hash=True)  # part of a key, for each node
class DeviceRules:
    admin_access: bool = True
    """Requests may ask for admin access to devices that others use."""
    prioritized_list: bool = True
    """Requests may list alternatives (`firstAvailable`)."""

    incomplete_pools_passed_over: bool = False
    """Devices of a pool whose newest generation is not complete are not given out; else only mode All refuses them."""
    invalid_pools_passed_over: bool = False
    """A pool that is not valid is passed over; else a search that reaches it fails the attempt."""
    alternatives_kept_apart: bool = False
    """Each alternative of a request has its own devices, with mode All, too; else the second has the first one's."""
    partitionable_devices: bool = False
    """Devices share counters of their pool, and may be on nodes of their own."""
    consumable_capacity: bool = False
    """Several claims may share a device up to its capacity; requests may want an attribute to differ."""
    device_taints: bool = False
    """Requests must tolerate the taints of devices."""
    binding_conditions: bool = False
    """Devices may have to be made ready before the pod is bound."""
