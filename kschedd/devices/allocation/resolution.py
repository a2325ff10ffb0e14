"""A claim's requests resolved for one node: device class, number of devices, and matching devices.

Source: Kubernetes v1.34 and v1.36, dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
(Allocate, validateDeviceRequest, isSelectable).
Errors: AllocationError if a claim or a class cannot be used.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, Raw
from kschedd.api.selecting.requirements import SelectorError
from kschedd.devices.allocation.solution import AllocationError
from kschedd.devices.claims import Claim, DeviceRequest, DeviceSubRequest
from kschedd.devices.pools.allocated import AllocatedState
from kschedd.devices.pools.capacity import NEGATIVE, Amounts, CapacityError, consumed_capacity, fits
from kschedd.devices.pools.inventory import Device, DeviceId
from kschedd.devices.pools.on_node import Pool
from kschedd.devices.rules import DeviceRules
from kschedd.devices.selection import SelectorFailure, selects

_NOTHING: Final[Mapping[str, Fraction]] = {}
_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
    "for optional fields"
)


@attrs.frozen(eq=False)
class ResolvedRequest:
    """A request or subrequest resolved for this node."""

    claim: Claim
    subrequest: DeviceSubRequest
    device_class: Object
    count: int
    every: tuple[Device, ...] | None  # for mode All: all matching devices; for mode ExactCount: None
    rules: DeviceRules
    _consumed: dict[DeviceId, Amounts | None] = attrs.field(factory=dict)

    def consumed(self, device: Device) -> Amounts | None:
        """Return the capacities that the request consumes of the device; None if the device cannot serve the request.

        Raises CapacityError.
        """
        if not self.subrequest.capacity:
            if self.rules.capacity_representable and device.negative_by_default:
                raise CapacityError(device.negative_by_default, NEGATIVE)
            return device.consumed_by_default
        if device.id not in self._consumed:
            self._consumed[device.id] = consumed_capacity(self.subrequest.capacity, device.capacities, self.rules)
        return self._consumed[device.id]


@attrs.frozen(eq=False)
class RequestResolver:
    node: Node
    pools: Sequence[Pool]
    classes: Callable[[str], Object | None]
    in_use: AllocatedState
    rules: DeviceRules
    _reached: dict[DeviceId, bool] = attrs.field(factory=dict)

    def alternatives(self, claim: Claim, request: DeviceRequest) -> list[ResolvedRequest]:
        """Return the resolved request, or each of its resolved subrequests."""
        if request.prioritised and not self.rules.prioritized_list:
            raise AllocationError(
                f"claim {claim}, request {request.name}: "
                "has subrequests, but the DRAPrioritizedList feature is disabled"
            )
        if not self.rules.consumable_capacity and not self.rules.capacity_requests_ignored:
            for subrequest in request.subrequests:
                if subrequest.states_capacity:
                    kind = "subrequest" if request.prioritised else "request"
                    raise AllocationError(
                        f"claim {claim}, {kind} {subrequest.name}: "
                        "has capacity requests, but the DRAConsumableCapacity feature is disabled"
                    )
        found: list[ResolvedRequest] = []
        for which, subrequest in enumerate(request.subrequests):
            # A bug of upstream: the value is read from the cache entry of the first alternative, which exists only in
            # mode All.
            matched = found[0].every if which == 1 and not self.rules.alternatives_kept_apart else None
            found.append(self._resolved(claim, subrequest, matched))
        return found

    def _resolved(
        self, claim: Claim, subrequest: DeviceSubRequest, matched: tuple[Device, ...] | None
    ) -> ResolvedRequest:
        """Resolve a request.

        `matched` contains the devices that match in mode All; None: evaluate the selectors.
        """

        def here() -> str:  # a function, because it is needed only for errors and requests are resolved for each node
            return f"claim {claim}, request {subrequest.name}"

        for number, selector in enumerate(subrequest.selectors):
            if selector.get("cel") is None:
                raise AllocationError(
                    f"{here()}, selector #{number}: CEL expression empty (unsupported selector type?)"
                )
        if subrequest.asks_admin_access and not self.rules.admin_access:
            raise AllocationError(f"{here()}: admin access is requested, but the feature is disabled")
        if not subrequest.device_class:
            raise AllocationError(f"{here()}: missing device class name (unsupported request type?)")
        device_class = self.classes(subrequest.device_class)
        if device_class is None:
            raise AllocationError(
                f"{here()}: could not retrieve device class {subrequest.device_class}: "
                f'deviceclass.resource.k8s.io "{subrequest.device_class}" not found'
            )
        wanted = ResolvedRequest(claim, subrequest, device_class, subrequest.count, None, self.rules)
        if subrequest.mode == "ExactCount":
            return wanted
        if subrequest.mode != "All":
            raise AllocationError(f"{here()}: unsupported count mode {subrequest.mode}")
        every = tuple(self._every(here(), wanted, evaluate=matched is None))
        if matched is not None:
            every = matched
        return attrs.evolve(wanted, count=len(every), every=every)

    def _every(self, here: str, wanted: ResolvedRequest, *, evaluate: bool) -> Iterator[Device]:
        for pool in self.pools:
            if pool.incomplete or pool.invalid:
                state = "being updated" if pool.incomplete else "invalid"
                raise AllocationError(f"{here}: asks for all devices, but resource pool {pool} is currently {state}")
            if evaluate:
                for device in pool.devices():
                    if self.selected(wanted, device) and self._counts_to_all(wanted, device):
                        yield device

    def _counts_to_all(self, wanted: ResolvedRequest, device: Device) -> bool:
        """Return whether a selected device counts in mode All: it has the capacity, and by the rule may be in use."""
        if not self.rules.all_needs_capacity or not self.rules.consumable_capacity:
            return self.capacity_fits(wanted, device, _NOTHING)
        try:
            consumed = wanted.consumed(device)
        except CapacityError as fault:
            raise _fatal(wanted, device.id.name, fault) from fault
        return consumed is not None and fits(consumed, _NOTHING, device.capacities)

    def selected(self, wanted: ResolvedRequest, device: Device) -> bool:
        """Return whether the class and the request select the device, and whether the node can use it."""
        if device.raw.get("bindingConditions") and not self.rules.binding_conditions:
            return False
        of_class: tuple[Raw, ...] = tuple(wanted.device_class.spec.get("selectors") or ())
        requested = wanted.subrequest.selectors
        return (
            (not of_class or self._all_select(f"class {wanted.device_class.name}", of_class, device))
            and (not requested or self._all_select(f"claim {wanted.claim}", requested, device))
            and (not device.slice.per_device or self._reaches(device))
        )

    def capacity_fits(self, wanted: ResolvedRequest, device: Device, taken: Mapping[str, Fraction]) -> bool:
        """Return whether the device has enough free capacity, without its allocations and `taken` by this search."""
        if not self.rules.consumable_capacity:
            return True
        used = self.in_use.capacity.get(device.id, _NOTHING)
        plain = not (self.rules.capacity_representable and device.negative_by_default)
        if plain and not (used or taken or wanted.subrequest.capacity):
            return device.serves_by_default
        try:
            consumed = wanted.consumed(device)
        except CapacityError as fault:
            raise _fatal(wanted, str(device.id), fault) from fault
        if consumed is None:
            return False
        if taken:
            used = {name: used.get(name, Fraction()) + taken.get(name, Fraction()) for name in {**used, **taken}}
        return fits(consumed, used, device.capacities)

    def _reaches(self, device: Device) -> bool:
        known = self._reached.get(device.id)
        if known is None:
            try:
                known = self._reached[device.id] = device.reach.includes(self.node)
            except SelectorError as fault:
                raise AllocationError(f"failed to parse node selector: {fault}") from fault
        return known

    def _all_select(self, whose: str, selectors: tuple[Raw, ...], device: Device) -> bool:
        for number, selector in enumerate(selectors):
            expression = (selector.get("cel") or {}).get("expression") or ""
            try:
                if not selects(expression, device, shares=not self.rules.capacity_requests_ignored):
                    return False
            except SelectorFailure as failure:
                here = f"{whose}: selector #{number}"
                if failure.at_compile_time:
                    raise AllocationError(f"{here}: CEL compile error: {failure}") from failure
                text = str(failure)
                if self.rules.selector_errors_name_device:
                    here += f" on device {device.id}"
                    text += _HINT if "no such key:" in text else ""
                raise AllocationError(f"{here}: CEL runtime error: {text}") from failure
        return True


def _fatal(wanted: ResolvedRequest, device: str, fault: CapacityError) -> AllocationError:
    """Return the error for a request that cannot be compared with the capacities of a device."""
    request = f"claim {wanted.claim}, request {wanted.subrequest.name}"
    return AllocationError(f"{request}: checking capacity for device {device}: {fault}")
