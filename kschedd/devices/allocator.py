"""Allocates devices on one node to unallocated claims: the first solution in upstream's search order.

Backtracking search over claims, requests and devices: each step picks the first candidate that is free, selected and
within the constraints, and the next candidate when the remaining search fails. The subrequests of a prioritised list
are tried in order. The result is that of an exhaustive search, but failed states are memoised and not searched twice:
whether the remaining search succeeds depends only on the devices taken so far and the constraints' current values.
Steps are counted and limited to `most_steps`, in place of upstream's timeout (real time would make two runs differ).

Two bugs of v1.34.1 are reproduced here. Both concern a prioritised list in which a subrequest other than the first has
allocation mode All. The devices of the second subrequest are read from a cache keyed by the first, so they are the
first one's devices if it has mode All too. And after its first device the search continues as if the first subrequest
were being tried.

Source: Kubernetes v1.34, dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go.
Errors: AllocationError ends the scheduling attempt; NodeFailure concerns this node only.
"""

from collections.abc import Callable, Generator, Mapping
from enum import Enum
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, Raw
from kschedd.devices.claims import MOST_DEVICES, Claim, DeviceRequest, DeviceSubRequest
from kschedd.devices.inventory import Device, DeviceId, Inventory, InventoryError, Pool
from kschedd.devices.selection import SelectorFailure, selects
from kschedd.errors import KscheddError

_NOBODY: Final[frozenset[int]] = frozenset()
_MOST_REMEMBERED: Final = 100_000
_REMEMBER_FROM: Final = 32  # steps after which memoising failed states pays off


@attrs.define(eq=False)
class AllocationError(KscheddError):
    """A fault of a claim or device class, independent of the node."""

    why: str

    def __str__(self) -> str:
        return self.why


@attrs.define(eq=False)
class NodeFailure(KscheddError):
    """This node cannot be evaluated; other nodes can."""

    why: str

    def __str__(self) -> str:
        return self.why


@attrs.frozen(eq=False)
class Features:
    admin_access: bool = True
    prioritized_list: bool = True


@attrs.frozen(eq=False)
class AllocatedDevice:
    """One device allocated to one request of a claim."""

    request: DeviceRequest
    subrequest: DeviceSubRequest
    device: Device


@attrs.frozen(eq=False)
class Allocation:
    """For each claim: its devices in allocation order, and the subrequest that was satisfied for each request."""

    given: tuple[tuple[AllocatedDevice, ...], ...]
    chosen: tuple[tuple[DeviceSubRequest, ...], ...]


@attrs.frozen(eq=False)
class Allocator:
    """Inputs of the allocation that are the same for all nodes in one scheduling attempt."""

    claims: tuple[Claim, ...]
    in_use: frozenset[DeviceId]
    classes: Callable[[str], Object | None]
    inventory: Inventory
    features: Features = Features()
    most_steps: int = 0  # 0: no limit

    def allocate(self, node: Node) -> Allocation | None:
        """Devices for all claims, or None; raises AllocationError or NodeFailure."""
        try:
            pools = self.inventory.pools(node)
        except InventoryError as fault:
            raise AllocationError(f"gather pool information: {fault}") from fault
        return _Search(self, pools).run()


@attrs.define(eq=False)
class _Wanted:
    """A request or subrequest resolved for this node."""

    subrequest: DeviceSubRequest
    device_class: Object
    count: int
    every: tuple[Device, ...] | None  # mode All: all matching devices; None for ExactCount


@attrs.define(eq=False)
class _MatchAttribute:
    """matchAttribute constraint: all devices allocated to these requests have the same value of the attribute."""

    requests: frozenset[str]
    attribute: str
    value: tuple[str, Any] | None = None
    devices: int = 0

    def concerns(self, request: DeviceRequest, subrequest: DeviceSubRequest) -> bool:
        asked = self.requests
        return not asked or request.name in asked or request.full_name(subrequest) in asked

    def add(self, device: Device) -> bool:
        value = device.attribute(self.attribute)
        if value is None:
            return False
        if self.devices == 0:
            self.value = value
        elif value != self.value:
            return False
        self.devices += 1
        return True


# Position of the search: claim, request, alternative (-1: none chosen yet), devices chosen, first candidate to try.
_Place = tuple[int, int, int, int, int]


class _DeadEnd(Enum):
    """Why the search from a position failed."""

    FAILED = 0
    TOO_MANY = 1  # the claim would exceed its device limit whichever devices are chosen: no others are tried


_Choices = Generator[_Place, _DeadEnd, _DeadEnd]


@attrs.define(eq=False)
class _Search:
    setting: Allocator
    pools: tuple[Pool, ...]
    wanted: list[list[list[_Wanted]]] = attrs.field(factory=list)  # claim, request, alternative
    constraints: list[list[_MatchAttribute]] = attrs.field(factory=list)
    candidates: list[Device | Pool] = attrs.field(factory=list)  # an invalid pool is in the list itself
    taken: dict[DeviceId, set[int]] = attrs.field(factory=dict)  # device -> indices of claims holding it in this search
    given: list[list[AllocatedDevice]] = attrs.field(factory=list)
    chosen: list[list[int]] = attrs.field(factory=list)
    failed: set[Any] = attrs.field(factory=set)
    steps: int = 0

    def run(self) -> Allocation | None:
        for claim in self.setting.claims:
            self._understand(claim)
        for pool in self.pools:
            # Devices of an incomplete pool may be allocated except in mode All.
            self.candidates += [pool] if pool.invalid else [device for one in pool.slices for device in one.devices]
        if not self._solve():
            return None
        claims = self.setting.claims
        return Allocation(
            tuple(tuple(given) for given in self.given),
            tuple(
                tuple(claim.requests[r].subrequests[which] for r, which in enumerate(self.chosen[c]))
                for c, claim in enumerate(claims)
            ),
        )

    # -- before the search ------------------------------------------------------------------------------------

    def _understand(self, claim: Claim) -> None:
        at_least = 0
        requests: list[list[_Wanted]] = []
        for request in claim.requests:
            if request.prioritised and not self.setting.features.prioritized_list:
                raise AllocationError(
                    f"claim {claim}, request {request.name}: "
                    "has subrequests, but the DRAPrioritizedList feature is disabled"
                )
            alternatives: list[_Wanted] = []
            for which, subrequest in enumerate(request.subrequests):
                # Upstream's bug: taken from the first alternative's cache entry, which exists only in mode All.
                matched = alternatives[0].every if which == 1 else None
                alternatives.append(self._wanted(claim, subrequest, matched))
            requests.append(alternatives)
            at_least += min((wanted.count for wanted in alternatives), default=0)
        if at_least > MOST_DEVICES:
            raise AllocationError(
                f"claim {claim}: number of requested devices {at_least} exceeds the claim limit of {MOST_DEVICES}"
            )
        constraints = []
        for number, raw in enumerate(claim.constraints):
            if raw.get("matchAttribute") is None:
                raise AllocationError(
                    f"claim {claim}, constraint #{number}: empty constraint (unsupported constraint type?)"
                )
            constraints.append(_MatchAttribute(frozenset(raw.get("requests") or ()), raw["matchAttribute"]))
        self.wanted.append(requests)
        self.constraints.append(constraints)
        self.given.append([])
        self.chosen.append([0] * len(requests))

    def _wanted(self, claim: Claim, subrequest: DeviceSubRequest, matched: tuple[Device, ...] | None) -> _Wanted:
        """Resolve a request. `matched`: the devices that mode All uses as matches; None: evaluate the selectors."""
        here = f"claim {claim}, request {subrequest.name}"
        for number, selector in enumerate(subrequest.selectors):
            if selector.get("cel") is None:
                raise AllocationError(f"{here}, selector #{number}: CEL expression empty (unsupported selector type?)")
        if subrequest.asks_admin_access and not self.setting.features.admin_access:
            raise AllocationError(f"{here}: admin access is requested, but the feature is disabled")
        if not subrequest.device_class:
            raise AllocationError(f"{here}: missing device class name (unsupported request type?)")
        device_class = self.setting.classes(subrequest.device_class)
        if device_class is None:
            raise AllocationError(
                f"{here}: could not retrieve device class {subrequest.device_class}: "
                f'deviceclass.resource.k8s.io "{subrequest.device_class}" not found'
            )
        if subrequest.mode == "ExactCount":
            return _Wanted(subrequest, device_class, subrequest.count, None)
        if subrequest.mode != "All":
            raise AllocationError(f"{here}: unsupported count mode {subrequest.mode}")
        found: list[Device] = []
        for pool in self.pools:
            if pool.incomplete or pool.invalid:
                state = "being updated" if pool.incomplete else "invalid"
                raise AllocationError(f"{here}: asks for all devices, but resource pool {pool} is currently {state}")
            if matched is None:
                for one in pool.slices:
                    found += [
                        device for device in one.devices if self._selected(claim, subrequest, device_class, device)
                    ]
        every = tuple(found) if matched is None else matched
        return _Wanted(subrequest, device_class, len(every), every)

    # -- the search -------------------------------------------------------------------------------------------

    def _solve(self) -> bool:
        """Depth-first search with an explicit stack of generators, each of which makes its choices and undoes them."""
        begin: _Place = (0, 0, -1, 0, 0)
        stack: list[tuple[_Place, _Choices]] = [(begin, self._choices(begin))]
        led_to: _DeadEnd | None = None  # why the last choice failed
        while stack:
            place, choices = stack[-1]
            try:
                following = next(choices) if led_to is None else choices.send(led_to)
            except StopIteration as end:
                led_to = end.value
                stack.pop()
                remember = self.steps > _REMEMBER_FROM and len(self.failed) < _MOST_REMEMBERED
                if remember and led_to is _DeadEnd.FAILED:
                    self.failed.add(self._state(place))
                continue
            if following[0] >= len(self.setting.claims):
                return True
            if self.failed and self._state(following) in self.failed:
                led_to = _DeadEnd.FAILED
                continue
            led_to = None
            self._count_step()
            stack.append((following, self._choices(following)))
        if led_to is _DeadEnd.TOO_MANY:
            raise AllocationError("allocation max size exceeded")
        return False

    def _count_step(self) -> None:
        self.steps += 1
        if 0 < self.setting.most_steps < self.steps:
            raise NodeFailure("timed out trying to allocate devices")

    def _state(self, place: _Place) -> Any:
        """Memo key: everything that the search from this position depends on."""
        taken = frozenset((device, claim) for device, claims in self.taken.items() for claim in claims)
        seen = tuple(
            constraint.value if constraint.devices else None
            for constraints in self.constraints[place[0] :]
            for constraint in constraints
        )
        return (place, taken, seen, len(self.given[place[0]]))

    def _choices(self, place: _Place) -> _Choices:
        claim, request, alternative, number, start = place
        requests = self.wanted[claim]
        if request >= len(requests):
            yield (claim + 1, 0, -1, 0, 0)
            return _DeadEnd.FAILED  # another claim's device limit is not a fault of this claim
        if alternative < 0:
            return (yield from self._alternatives(claim, request))
        wanted = requests[request][alternative]
        if wanted.every is not None and not wanted.every:
            return _DeadEnd.FAILED  # "all" means at least one
        if number >= wanted.count:
            return (yield (claim, request + 1, -1, 0, 0))
        if len(self.given[claim]) + wanted.count - number > MOST_DEVICES:
            return _DeadEnd.TOO_MANY
        if wanted.every is not None:
            device = wanted.every[number]
            if not self._take(place, wanted, device, must=True):
                return _DeadEnd.FAILED
            led_to = yield (claim, request, 0, number + 1, 0)  # alternative 0: upstream's bug, see the module docstring
            self._give_back(place, wanted, device)
            return led_to
        of_claim = self.setting.claims[claim]
        for at in range(start, len(self.candidates)):
            candidate = self.candidates[at]
            if isinstance(candidate, Pool):
                raise AllocationError(f"pool {candidate.name} is invalid: {candidate.invalid}")
            device = candidate
            if self._occupied(claim, wanted.subrequest, device):
                continue
            if not self._selected(of_claim, wanted.subrequest, wanted.device_class, device):
                continue
            if self._take(place, wanted, device, must=False):
                # The order of devices within a request does not matter: continue after this one.
                led_to = yield (claim, request, alternative, number + 1, at + 1)
                self._give_back(place, wanted, device)
                if led_to is _DeadEnd.TOO_MANY:
                    return led_to
        return _DeadEnd.FAILED

    def _alternatives(self, claim: int, request: int) -> _Choices:
        """Try the alternatives in order; TOO_MANY only if every alternative exceeds the device limit."""
        ends = set()
        for which in range(len(self.wanted[claim][request])):
            self.chosen[claim][request] = which
            ends.add((yield (claim, request, which, 0, 0)))
        return _DeadEnd.TOO_MANY if ends == {_DeadEnd.TOO_MANY} else _DeadEnd.FAILED

    def _occupied(self, claim: int, subrequest: DeviceSubRequest, device: Device) -> bool:
        takers = self.taken.get(device.id, _NOBODY)
        if subrequest.admin_access:
            return claim in takers
        return bool(takers) or device.id in self.setting.in_use

    def _take(self, place: _Place, wanted: _Wanted, device: Device, *, must: bool) -> bool:
        claim, subrequest = place[0], wanted.subrequest
        if self._occupied(claim, subrequest, device) or not device.usable:
            return False
        request = self.setting.claims[claim].requests[place[1]]
        added: list[_MatchAttribute] = []
        for constraint in self.constraints[claim]:
            if not constraint.concerns(request, subrequest):
                continue
            if not constraint.add(device):
                if must:
                    raise AllocationError(
                        f"claim {self.setting.claims[claim]}, request {subrequest.name}: cannot add device {device.id} "
                        "because a claim constraint would not be satisfied"
                    )
                for earlier in added:
                    earlier.devices -= 1
                return False
            added.append(constraint)
        self.taken.setdefault(device.id, set()).add(claim)
        self.given[claim].append(AllocatedDevice(request, subrequest, device))
        return True

    def _give_back(self, place: _Place, wanted: _Wanted, device: Device) -> None:
        claim = place[0]
        request = self.setting.claims[claim].requests[place[1]]
        for constraint in self.constraints[claim]:
            if constraint.concerns(request, wanted.subrequest):
                constraint.devices -= 1
        holders = self.taken[device.id]
        holders.discard(claim)
        if not holders:
            del self.taken[device.id]
        self.given[claim].pop()

    # -- selectors --------------------------------------------------------------------------------------------

    def _selected(self, claim: Claim, subrequest: DeviceSubRequest, device_class: Object, device: Device) -> bool:
        if device.raw.get("bindingConditions"):
            return False  # the feature gate that waits for binding conditions is off
        of_class: tuple[Raw, ...] = tuple(device_class.spec.get("selectors") or ())
        return _all_select(f"class {device_class.name}", of_class, device) and _all_select(
            f"claim {claim}", subrequest.selectors, device
        )


def _all_select(whose: str, selectors: tuple[Mapping[str, Any], ...], device: Device) -> bool:
    for number, selector in enumerate(selectors):
        expression = (selector.get("cel") or {}).get("expression") or ""
        try:
            if not selects(expression, device):
                return False
        except SelectorFailure as failure:
            if failure.at_compile_time:
                raise AllocationError(f"{whose}: selector #{number}: CEL compile error: {failure}") from failure
            raise AllocationError(f"{whose}: selector #{number}: CEL runtime error: {failure}") from failure
    return True
