"""Rules for the allocation of devices: the behavior of a kube-scheduler version with its feature gates.

Each field describes the behavior for the value True. With all fields at their defaults the behavior is that of 1.34.
"""

import attrs


# the hash is cached, because the rules are part of a key that is computed for each node
@attrs.frozen(kw_only=True, cache_hash=True)
class DeviceRules:
    admin_access: bool = True
    """ClaimRequests may use admin access to devices that others use."""
    prioritized_list: bool = True
    """ClaimRequests may list alternatives (`firstAvailable`)."""

    incomplete_pools_passed_over: bool = False
    """Devices of a pool whose newest generation is incomplete are not allocated; if False, only mode All rejects them.
    """
    invalid_pools_passed_over: bool = False
    """An invalid pool is skipped; if False, a search that reaches it fails the attempt."""
    alternatives_kept_apart: bool = False
    """Each alternative of a request has its own devices, also with mode All; if False, the second has the first one's.
    """
    partitionable_devices: bool = False
    """Devices share counters of their pool, and may be on nodes of their own."""
    consumable_capacity: bool = False
    """Several claims may share a device up to its capacity; requests may require distinct attribute values."""
    device_taints: bool = False
    """ClaimRequests must tolerate the taints of devices."""
    binding_conditions: bool = False
    """Devices may have to become ready before the pod is bound."""
    device_taint_rules: bool = False
    """Taints of DeviceTaintRules count like those of devices."""

    counter_slices_passed_over: bool = False
    """Slices with shared counters are skipped if devices do not share counters."""
    capacity_requests_ignored: bool = False
    """Capacity requests are ignored, and constraints of distinct attributes are unsupported (1.35)."""
    all_needs_capacity: bool = False
    """Mode All fails if a matching device lacks capacity, instead of leaving it out."""
    distinct_by_device: bool = False
    """distinctAttribute compares a device with every other one, not only with the last one of each request."""
    pool_counters_apart: bool = False
    """Shared counters are stored by driver and pool, not by the name of the pool alone."""
    counter_slices_have_nodes: bool = False
    """Slices with shared counters are read for the nodes that they select, and for others with the whole pool."""
    counters_charged_once: bool = False
    """A shared device in use does not consume counters again, even if its allocations record no capacity."""
    capacity_representable: bool = False
    """Capacity requests beyond 64 bits, and negative capacities, are errors."""
    capacity_formatted_by_step: bool = False
    """Capacity that is rounded up to a step is formatted like the step."""
    fractional_capacity: bool = False
    """Ranges of capacity may have thousandths."""
    claim_limit_by_request: bool = False
    """The error for a claim with too many devices names the request that exceeds the limit."""
    selector_errors_name_device: bool = False
    """The error of a CEL selector names the device."""
    config_requests_collapsed: bool = False
    """Each configuration of a claim is one entry of its allocation, not one for each request."""
