"""State of DynamicResources in one scheduling attempt: the pod's claims, and the allocation on each node.

Source: Kubernetes v1.34 and v1.36, plugins/dynamicresources/dynamicresources.go (stateData, computeScore).
"""

from typing import Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.selecting.selectors import NodeSelector
from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.known_allocations import ClaimRequests
from kschedd.devices.allocation.solution import Allocation
from kschedd.devices.claims import Claim, allocation, read_claim
from kschedd.devices.extended_resources import ExtendedResourceClaim, NodeClaim
from kschedd.framework.status import Status

_MOST_ALTERNATIVES: Final = 8  # largest number of alternatives of a request; also the score of the first alternative


@attrs.frozen(eq=False)
class NodeRequests:
    """The claims to allocate on nodes where a DeviceClass provides the same extended resources."""

    claims: tuple[Claim, ...]
    known: ClaimRequests = attrs.field(repr=False)
    extended: NodeClaim | None = None


@attrs.frozen(eq=False)
class AllocationOnNode:
    """The allocation on a node for the claims that are not allocated yet."""

    claims: tuple[Claim, ...]
    solution: Allocation
    extended: NodeClaim | None


@attrs.define(eq=False)
class DeviceAttempt:
    """State of one attempt.

    What-if evaluations share the attempt's state, because added or removed pods do not affect the state.
    """

    claims: tuple[Object, ...] = ()  # the pod's claims; the claim for extended resources is last
    reachable: tuple[NodeSelector | None, ...] = ()  # nodes on which each allocated claim can be used; None: every node
    not_ready: frozenset[int] = frozenset()  # indices of allocated claims with devices that failed or timed out
    allocator: Allocator | None = None
    open_claims: tuple[int, ...] = ()  # indices of the claims to allocate
    extended: ExtendedResourceClaim | None = None
    # requests of a node, by the pod's extended resources that a DeviceClass provides on the node
    requests_by_need: dict[tuple[str, ...], NodeRequests] = attrs.field(factory=dict, repr=False)
    outcomes: dict[str, Status | None] = attrs.field(factory=dict)  # by node
    requested: dict[str, tuple[Claim, ...]] = attrs.field(factory=dict)  # by node
    found: dict[str, AllocationOnNode] = attrs.field(factory=dict)  # by node
    unavailable: set[int] = attrs.field(factory=set)  # indices of claims whose allocation some node cannot use
    reserved: dict[int, Raw] = attrs.field(factory=dict)  # claim index -> assumed allocation
    # indices of claims for which PreBind has written a reservation for the pod
    written: set[int] = attrs.field(factory=set)

    @property
    def has_user_claims(self) -> bool:
        return len(self.claims) > (self.extended is not None)

    def score(self, node_name: str) -> int:
        """Return the node's score; an alternative that is earlier in its request's list scores higher."""
        found = self.found.get(node_name)
        return 0 if found is None else _score(found) + sum(map(_score_allocated, self.claims))

    def is_extended(self, place: int) -> bool:
        return self.extended is not None and place == len(self.claims) - 1


WITHOUT_CLAIMS: Final = DeviceAttempt()


def _score(found: AllocationOnNode) -> int:
    """Return the score of the alternatives that were allocated on a node."""
    return sum(
        _MOST_ALTERNATIVES - request.subrequests.index(chosen)
        for claim, of_claim in zip(found.claims, found.solution.chosen, strict=True)
        for request, chosen in zip(claim.requests, of_claim, strict=True)
        if request.prioritised
    )


def _score_allocated(claim: Object) -> int:
    """Return the score of a claim that was already allocated before this attempt."""
    results = ((allocation(claim) or {}).get("devices") or {}).get("results") or ()
    names = {result.get("request") for result in results}
    return sum(
        _MOST_ALTERNATIVES - number
        for request in (read_claim(claim).requests if names else ())
        if request.prioritised
        for number, alternative in enumerate(request.subrequests)
        if request.full_name(alternative) in names
    )
