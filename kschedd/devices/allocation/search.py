"""The search for devices on one node: backtracking over claims, requests and devices.

Each step takes the first candidate that is free, selected and allowed by the constraints. If the remaining search
fails, the step takes the next candidate. The subrequests of a prioritized list are tried in order. The result equals
that of an exhaustive search, but failed states are stored and not searched again. Whether the remaining search succeeds
depends only on the devices taken so far and the present values of the constraints. Steps are counted and limited to
`most_steps`. kube-scheduler has a timeout instead of a limit of steps; with a timeout, two runs could differ.

Candidates that every search rejects (`known_candidates`) are skipped, and so are candidates with a different value of
an attribute that must match. The steps of skipped dead ends are counted as if they had been taken.

The search reproduces the following bugs of kube-scheduler:

* 1.34: in a subrequest other than the first, mode All continues after its first device as if it were in the first
  subrequest.
* 1.36.3: after returning a device, a constraint may be in another state than before (`constraints`).
  After this bug has occurred, failed states are not stored, because they no longer depend only on the taken devices.

Source: Kubernetes v1.34 and v1.36, dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
(allocateOne, allocateDevice).
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from enum import Enum
from fractions import Fraction
from typing import Any, Final

import attrs

from kschedd.api.objects import Raw
from kschedd.devices.allocation.constraints import AttributeValue, Constraint
from kschedd.devices.allocation.known_candidates import CandidatesOfRequest, KnownCandidates
from kschedd.devices.allocation.resolution import RequestResolver, ResolvedRequest
from kschedd.devices.allocation.solution import AllocatedDevice, Allocation, AllocationError, AllocationTimeout
from kschedd.devices.claims import MOST_DEVICES, Claim, DeviceSubRequest
from kschedd.devices.pools.capacity import add
from kschedd.devices.pools.counters import Consumed
from kschedd.devices.pools.inventory import Device, DeviceId
from kschedd.devices.pools.on_node import DeviceCandidates, Pool
from kschedd.devices.rules import DeviceRules

_NOBODY: Final[frozenset[int]] = frozenset()
_NO_DEVICES: Final[frozenset[DeviceId]] = frozenset()
_NOTHING: Final[Mapping[str, Fraction]] = {}
_MOST_REMEMBERED: Final = 100_000
_REMEMBER_FROM: Final = 32  # minimum number of steps from which on storing failed states saves time

# Position of the search: claim, request, alternative (-1: not chosen yet), number of taken devices, first candidate to
# try.
_Place = tuple[int, int, int, int, int]


class _DeadEnd(Enum):
    """The reason why the search from a position failed."""

    FAILED = 0
    NONE_LEFT = 1  # no candidate could be taken
    TOO_MANY = 2  # any further device would exceed the claim's limit


_Choices = Generator[_Place, _DeadEnd, _DeadEnd]


@attrs.define(eq=False)
class Search:
    claims: tuple[Claim, ...]
    resolver: RequestResolver
    known: KnownCandidates
    counters: Consumed
    most_steps: int  # 0: no limit
    wanted: list[list[list[ResolvedRequest]]] = attrs.field(factory=list)  # claim, request, alternative
    constraints: list[list[Constraint]] = attrs.field(factory=list)
    # by device: indices of the claims for which this search has taken it
    taken: dict[DeviceId, set[int]] = attrs.field(factory=dict)
    # capacity of each device taken by this search
    shares: dict[DeviceId, dict[str, Fraction]] = attrs.field(factory=dict)
    given: list[list[AllocatedDevice]] = attrs.field(factory=list)
    chosen: list[list[int]] = attrs.field(factory=list)
    failed: set[Any] = attrs.field(factory=set)
    has_leaked: bool = False
    steps: int = 0
    rules: DeviceRules = attrs.field(init=False)
    candidates: DeviceCandidates = attrs.field(init=False)
    # returns whether other claims use the device; only requests for admin access may then take it
    is_held: Callable[[DeviceId], bool] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.rules, self.candidates = self.resolver.rules, self.known.candidates
        in_use = self.resolver.in_use
        self.is_held = (in_use.whole if self.rules.consumable_capacity else in_use).__contains__

    def add(self, requests: list[list[ResolvedRequest]], constraints: list[Constraint]) -> None:
        """Add the requests and the constraints of the next claim."""
        self.wanted.append(requests)
        self.constraints.append(constraints)
        self.given.append([])
        self.chosen.append([0] * len(requests))

    def run(self) -> Allocation | None:
        if not self._solve():
            return None
        return Allocation(
            tuple(tuple(given) for given in self.given),
            tuple(
                tuple(claim.requests[r].subrequests[which] for r, which in enumerate(self.chosen[c]))
                for c, claim in enumerate(self.claims)
            ),
        )

    def _capacity_fits(self, wanted: ResolvedRequest, device: Device) -> bool:
        """Return whether the device has enough free capacity, also without the shares taken by this search."""
        return self.resolver.capacity_fits(wanted, device, self.shares.get(device.id, _NOTHING))

    # -- the search -------------------------------------------------------------------------------------------

    def _solve(self) -> bool:
        """Search depth first, with a stack of generators that each make choices and undo them."""
        begin: _Place = (0, 0, -1, 0, 0)
        if not self.claims:
            return True
        stack: list[tuple[_Place, _Choices]] = [(begin, self._choices(begin))]
        led_to: _DeadEnd | None = None  # reason why the latest choice failed
        while stack:
            place, choices = stack[-1]
            try:
                following = next(choices) if led_to is None else choices.send(led_to)
            except StopIteration as end:
                led_to = end.value
                stack.pop()
                remember = self.steps > _REMEMBER_FROM and len(self.failed) < _MOST_REMEMBERED and not self.has_leaked
                if remember and led_to is not _DeadEnd.TOO_MANY:
                    self.failed.add(self._state(place))
                continue
            if following[0] >= len(self.claims):
                return True
            if self.failed and not self.has_leaked and self._state(following) in self.failed:
                led_to = _DeadEnd.FAILED
                continue
            led_to = None
            self._count_steps(1)
            stack.append((following, self._choices(following)))
        if led_to is _DeadEnd.TOO_MANY:
            raise AllocationError("allocation max size exceeded")
        return False

    def _count_steps(self, number: int) -> None:
        self.steps += number
        if 0 < self.most_steps < self.steps:
            raise AllocationTimeout("timed out trying to allocate devices")

    def _state(self, place: _Place) -> Any:
        """Return the key for failed states: all data on which the remaining search depends."""
        taken = frozenset((device, claim) for device, claims in self.taken.items() for claim in claims)
        shares = frozenset((device, tuple(sorted(used.items()))) for device, used in self.shares.items())
        seen = tuple(constraint.state() for constraints in self.constraints[place[0] :] for constraint in constraints)
        return (place, taken, shares, seen, len(self.given[place[0]]))

    def _choices(self, place: _Place) -> _Choices:
        claim, request, alternative, number, _ = place
        requests = self.wanted[claim]
        if request >= len(requests):
            yield (claim + 1, 0, -1, 0, 0)
            return _DeadEnd.FAILED  # a claim other than the current claim exceeds its limit of devices
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
            led_to = yield (claim, request, alternative if self.rules.alternatives_kept_apart else 0, number + 1, 0)
            self._give_back(place, wanted, device)
            return led_to
        candidates, taken = self.candidates.in_order, self.taken
        known = self.known.of((claim, request, alternative))
        unseen, none_taken = known.unseen, True
        is_held = _NO_DEVICES.__contains__ if wanted.subrequest.admin_access else self.is_held
        for at in self._positions(place, wanted, known):
            candidate = candidates[at]
            if isinstance(candidate, Pool):
                raise AllocationError(f"pool {candidate.name} is invalid: {candidate.invalid}")
            device = candidate
            if taken and self._is_taken(claim, wanted.subrequest, device):
                continue
            if unseen[at]:
                if is_held(device.id) or not self._suits(wanted, device):
                    known.refuse(at)
                    continue
                unseen[at] = 0
            if self.shares and not self._capacity_fits(wanted, device):
                continue
            if self._take(place, wanted, device, must=False):
                none_taken = False
                # The order of a request's devices does not matter, so the search continues after this device.
                led_to = yield (claim, request, alternative, number + 1, at + 1)
                if led_to is _DeadEnd.NONE_LEFT and self._depends_on_its_pool(place, wanted, device):
                    known.first[at] = 0
                self._give_back(place, wanted, device)
                if led_to is _DeadEnd.TOO_MANY:
                    return led_to
            elif self._is_kept_back(wanted, device):
                known.refuse(at)
        return _DeadEnd.NONE_LEFT if none_taken else _DeadEnd.FAILED

    # -- candidates -------------------------------------------------------------------------------------------

    def _positions(self, place: _Place, wanted: ResolvedRequest, known: CandidatesOfRequest) -> Iterator[int]:
        """Return the positions of the candidates to examine, in order."""
        start = place[-1]
        if _is_first(place):
            return self._first_positions(known)
        required = self._required(place, wanted)
        if required is None:
            return known.possible_from(start)
        return known.alike_from(start, self.candidates.with_value(*required))

    def _first_positions(self, known: CandidatesOfRequest) -> Iterator[int]:
        """Yield the positions for the first device of all claims; count one step for each known dead end."""
        after = 0
        while (at := known.first.find(1, after)) >= 0:
            if at > after:
                self._count_steps(known.possible.count(1, after, at))
            yield at
            after = at + 1
        self._count_steps(known.possible.count(1, after))

    def _required(self, place: _Place, wanted: ResolvedRequest) -> tuple[str, AttributeValue] | None:
        """Return the attribute value that a device must have.

        A device without this value is rejected before any state changes.
        """
        request = self.claims[place[0]].requests[place[1]]
        for constraint in self.constraints[place[0]]:
            if constraint.concerns(request, wanted.subrequest):
                # the first failed constraint is enough, because the device must satisfy all constraints
                return constraint.required()
        return None

    def _depends_on_its_pool(self, place: _Place, wanted: ResolvedRequest, device: Device) -> bool:
        """Return whether the last device is the first of all claims, and only devices in its pool can follow."""
        required = self._required(place, wanted)
        if required is None or not _is_first(place):
            return False
        alike = self.candidates.with_value(*required)
        span = self.candidates.spans[device.id.driver, device.id.pool]
        return alike[0] in span and alike[-1] in span

    def _suits(self, wanted: ResolvedRequest, device: Device) -> bool:
        """Return whether the device is selected, and has enough capacity apart from this search."""
        return self.resolver.selected(wanted, device) and self.resolver.capacity_fits(wanted, device, _NOTHING)

    def _is_kept_back(self, wanted: ResolvedRequest, device: Device) -> bool:
        """Return whether counters or taints exclude the device before this search has taken any device."""
        if self._is_tainted(wanted, device):
            return True
        if not self._consumes_counters(device):
            return False
        pool = self.candidates.pool_of[device.id]
        return not (self.rules.partitionable_devices and Consumed(self.counters.available).take(pool, device))

    def _alternatives(self, claim: int, request: int) -> _Choices:
        """Try the alternatives in order; return TOO_MANY only if every alternative exceeds the device limit."""
        ends = set()
        for which in range(len(self.wanted[claim][request])):
            self.chosen[claim][request] = which
            ends.add((yield (claim, request, which, 0, 0)))
        return _DeadEnd.TOO_MANY if ends == {_DeadEnd.TOO_MANY} else _DeadEnd.FAILED

    # -- one device -------------------------------------------------------------------------------------------

    def _in_shares(self, device: Device) -> bool:
        return device.shared and self.rules.consumable_capacity

    def _is_taken(self, claim: int, subrequest: DeviceSubRequest, device: Device) -> bool:
        """Return whether this search has already taken the device, so that the request cannot have it."""
        takers = self.taken.get(device.id, _NOBODY)
        return claim in takers if subrequest.admin_access else bool(takers)

    def _is_tainted(self, wanted: ResolvedRequest, device: Device) -> bool:
        """Return whether the device has a taint that the request does not tolerate."""
        taints = device.raw.get("taints") or ()
        return self.rules.device_taints and untolerated(taints, wanted.subrequest.tolerations)

    def _take(self, place: _Place, wanted: ResolvedRequest, device: Device, *, must: bool) -> bool:
        """Take the device if it is free and passes all checks, in upstream's order."""
        claim, subrequest = place[0], wanted.subrequest
        if self._is_taken(claim, subrequest, device) or (not subrequest.admin_access and self.is_held(device.id)):
            return False
        counted = self._consumes_counters(device)
        if counted and not self._take_counters(device):
            return False
        if not self._accepted(place, wanted, device, must=must):
            if counted:
                self.counters.give_back(self.candidates.pool_of[device.id], device)
            return False
        share = None
        if self._in_shares(device):
            share = wanted.consumed(device)
            assert share is not None, "a device that its capacity does not suffice for is expected to be refused"
            add(self.shares.setdefault(device.id, {}), share)
        else:
            self.taken.setdefault(device.id, set()).add(claim)
        request = self.claims[claim].requests[place[1]]
        self.given[claim].append(AllocatedDevice(request, subrequest, device, share, counted))
        return True

    def _accepted(self, place: _Place, wanted: ResolvedRequest, device: Device, *, must: bool) -> bool:
        """Add the device to the constraints if taints, constraints and capacity allow it.

        Return whether the device was added.
        """
        if self._is_tainted(wanted, device):
            return False
        if not self._add_to_constraints(place, wanted, device, must=must):
            return False
        if must and not self._capacity_fits(wanted, device):  # otherwise checked before
            self._remove_from_constraints(place, wanted)
            return False
        return True

    def _consumes_counters(self, device: Device) -> bool:
        """Return whether taking the device consumes counters; only the first share of a device consumes them."""
        if not device.raw.get("consumesCounters"):
            return False
        in_use = self.resolver.in_use
        of_others = in_use.shared if self.rules.counters_charged_once else in_use.capacity
        shared_already = device.id in of_others or device.id in self.shares
        return not (self._in_shares(device) and shared_already)

    def _take_counters(self, device: Device) -> bool:
        return self.rules.partitionable_devices and self.counters.take(self.candidates.pool_of[device.id], device)

    def _add_to_constraints(self, place: _Place, wanted: ResolvedRequest, device: Device, *, must: bool) -> bool:
        of_claim = self.claims[place[0]]
        request = of_claim.requests[place[1]]
        added: list[Constraint] = []
        for constraint in self.constraints[place[0]]:
            if not constraint.concerns(request, wanted.subrequest):
                continue
            if not constraint.add(request, device):
                if must:
                    raise AllocationError(
                        f"claim {of_claim}, request {wanted.subrequest.name}: cannot add device {device.id} "
                        "because a claim constraint would not be satisfied"
                    )
                for earlier in added:
                    self._remove(earlier, place)
                return False
            added.append(constraint)
        return True

    def _remove(self, constraint: Constraint, place: _Place) -> None:
        if not constraint.remove(self.claims[place[0]].requests[place[1]]):
            self.has_leaked = True

    def _remove_from_constraints(self, place: _Place, wanted: ResolvedRequest) -> None:
        request = self.claims[place[0]].requests[place[1]]
        for constraint in self.constraints[place[0]]:
            if constraint.concerns(request, wanted.subrequest):
                self._remove(constraint, place)

    def _give_back(self, place: _Place, wanted: ResolvedRequest, device: Device) -> None:
        claim = place[0]
        self._remove_from_constraints(place, wanted)
        given = self.given[claim].pop()
        if given.counted:
            self.counters.give_back(self.candidates.pool_of[device.id], device)
        if given.share is None:
            holders = self.taken[device.id]
            holders.discard(claim)
            if not holders:
                del self.taken[device.id]
        else:
            used = self.shares[device.id]
            add(used, given.share, -1)
            if not any(used.values()):
                del self.shares[device.id]


def _is_first(place: _Place) -> bool:
    """Return whether the position is that of the first device of the first claim."""
    claim, request, _, number, _ = place
    return not (claim or request or number)


_KEEPS_BACK: Final = ("NoSchedule", "NoExecute")


def untolerated(taints: Iterable[Raw], tolerations: Iterable[Raw]) -> bool:
    """Return whether a taint of the device excludes it for requests with these tolerations.

    Only the effects NoSchedule and NoExecute exclude a device.
    Source: Kubernetes v1.36, dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
    (taintPreventsAllocation), resourceclaim/devicetoleration.go (ToleratesTaint).
    """
    tolerations = tuple(tolerations)
    return any(
        taint.get("effect") in _KEEPS_BACK and not any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


def _tolerates(toleration: Raw, taint: Raw) -> bool:
    effect, key = toleration.get("effect"), toleration.get("key")
    if (effect and effect != taint.get("effect")) or (key and key != taint.get("key")):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return operator == "Exists"
