"""Allocation of devices on one node to unallocated claims: the first solution in upstream's search order.

An `Allocator` contains all inputs that are the same for all nodes in a scheduling attempt.
`kschedd.devices.allocation.search` searches for the devices with the rules (`kschedd.devices.rules`) of the emulated
kube-scheduler version.

Source: Kubernetes v1.34, v1.36 and v1.37,
dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go.
Errors: AllocationError ends the scheduling attempt; NodeFailure concerns only this node.
"""

from collections.abc import Callable
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.devices.allocation.constraints import Constraint, read_constraint
from kschedd.devices.allocation.known_candidates import KnownCandidates
from kschedd.devices.allocation.resolution import RequestResolver, ResolvedRequest
from kschedd.devices.allocation.search import Search
from kschedd.devices.allocation.solution import Allocation, AllocationError, NodeFailure
from kschedd.devices.claims import MOST_DEVICES, Claim
from kschedd.devices.pools.allocated import AllocatedState
from kschedd.devices.pools.counters import Available, Consumed
from kschedd.devices.pools.inventory import Inventory, InventoryError
from kschedd.devices.pools.on_node import DeviceCandidates, candidates_of
from kschedd.devices.rules import DeviceRules

_RULES: Final = DeviceRules()
_NO_LIMIT: Final = 0


@attrs.frozen(eq=False)
class Allocator:
    """The inputs of an allocation that are the same for all nodes in a scheduling attempt."""

    claims: tuple[Claim, ...]
    in_use: AllocatedState
    classes: Callable[[str], Object | None]
    inventory: Inventory
    rules: DeviceRules = _RULES
    most_steps: int = _NO_LIMIT
    counters: Available = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "counters", Available(self.in_use.__contains__, self.rules.pool_counters_apart))

    def allocate(
        self, node: Node, claims: tuple[Claim, ...] | None = None, known: KnownCandidates | None = None
    ) -> Allocation | None:
        """Return devices for all claims; None if there are not enough.

        Pass `claims` if they depend on the node.

        `known` contains the candidates on this node, and the results of earlier searches for these claims; the results
        of this search are added. Raises AllocationError or NodeFailure.
        """
        known = known or KnownCandidates(self.candidates(node))
        solution = self._search(node, self.claims if claims is None else claims, known).run()
        pools = known.candidates.pools
        if solution is None and self.rules.invalid_pools_passed_over and any(pool.invalid for pool in pools):
            raise NodeFailure("invalid resource pools were encountered")
        return solution

    def candidates(self, node: Node) -> DeviceCandidates:
        """Return the devices that the node can use; an allocation depends on no other data of the node.

        Raises AllocationError.
        """
        try:
            return candidates_of(self.inventory, node, self.rules)
        except InventoryError as fault:
            raise AllocationError(f"gather pool information: {fault}") from fault

    def _search(self, node: Node, claims: tuple[Claim, ...], known: KnownCandidates) -> Search:
        resolver = RequestResolver(node, known.candidates.pools, self.classes, self.in_use, self.rules)
        search = Search(claims, resolver, known, Consumed(self.counters), self.most_steps)
        for claim in claims:
            search.add(self._requests(resolver, claim), self._constraints(claim))
        return search

    def _requests(self, resolver: RequestResolver, claim: Claim) -> list[list[ResolvedRequest]]:
        requests: list[list[ResolvedRequest]] = []
        at_least = 0
        for request in claim.requests:
            requests.append(resolver.alternatives(claim, request))
            least = min((wanted.count for wanted in requests[-1]), default=0)
            if self.rules.claim_limit_by_request and at_least + least > MOST_DEVICES:
                raise AllocationError(
                    f"claim {claim}, request {request.name}: adding {least} devices exceeds the claim limit of "
                    f"{MOST_DEVICES}, with {at_least} already accounted for"
                )
            at_least += least
        if at_least > MOST_DEVICES:
            raise AllocationError(
                f"claim {claim}: number of requested devices {at_least} exceeds the claim limit of {MOST_DEVICES}"
            )
        return requests

    def _constraints(self, claim: Claim) -> list[Constraint]:
        constraints = []
        for number, raw in enumerate(claim.constraints):
            constraint = read_constraint(raw, self.rules)
            if constraint is None:
                raise AllocationError(
                    f"claim {claim}, constraint #{number}: empty constraint (unsupported constraint type?)"
                )
            constraints.append(constraint)
        return constraints
