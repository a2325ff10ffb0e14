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
    device_taint_rules: bool = False
    """Taints of DeviceTaintRules count as those of devices do."""

    counter_slices_passed_over: bool = False
    """Where devices share no counters, slices with shared counters are passed over."""
    capacity_requests_ignored: bool = False
    """Requests of capacity are ignored, and constraints of distinct attributes unsupported (1.35)."""
    all_needs_capacity: bool = False
    """Mode All fails where a matching device is too full, instead of leaving it out."""
    distinct_by_device: bool = False
    """distinctAttribute compares a device with every other one, not with the last of each request."""
    pool_counters_apart: bool = False
    """Shared counters are kept by driver and pool, not by the name of the pool alone."""
    counter_slices_have_nodes: bool = False
    """Slices with shared counters are read for the nodes that they select, and for others with the whole pool."""
    counters_charged_once: bool = False
    """A shared device in use does not consume counters again, even if its allocations record no capacity."""
    capacity_representable: bool = False
    """Requests of capacity beyond 64 bits, and negative capacities, are errors."""
    capacity_formatted_by_step: bool = False
    """Capacity that a step rounds up is written in the format of the step."""
    fractional_capacity: bool = False
    """Ranges of capacity may have thousandths."""
    claim_limit_by_request: bool = False
    """The error for a claim of too many devices names the request that exceeds the limit."""
    selector_errors_name_device: bool = False
    """The error of a CEL selector names the device."""
    config_requests_collapsed: bool = False
    """Each configuration of a claim is one entry of its allocation, not one for each request."""
