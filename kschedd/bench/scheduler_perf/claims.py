"""Allocation of claims that no pod uses, so that some devices are occupied when a measurement begins.

Source: Kubernetes v1.34, test/integration/scheduler_perf/dra.go (allocResourceClaimsOp).

Errors: AllocationError.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, Raw
from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.known_allocations import ClaimRequests, KnownAllocations
from kschedd.devices.allocation.results import allocations
from kschedd.devices.allocation.solution import AllocationError
from kschedd.devices.claims import allocation, read_claim
from kschedd.devices.pools.allocated import InUse
from kschedd.devices.pools.inventory import Inventory
from kschedd.devices.rules import DeviceRules

_NO_LIMIT: Final = 0  # of steps


def allocated(
    claims: Sequence[Object],
    others: Sequence[Object],
    nodes: Sequence[Node],
    slices: Sequence[Object],
    classes: Mapping[str, Object],
    rules: DeviceRules,
    chance: random.Random,
) -> Iterator[tuple[Object, Raw]]:
    """Yield the unallocated claims among `claims`, each with an allocation to a node that has the devices.

    `others` are claims that may occupy devices; they may include `claims`.
    """
    in_use = InUse()
    for claim in (*others, *claims):
        in_use.take(claim.key, claim)
    inventory, known = Inventory().updated(slices), KnownAllocations()
    mixed = inventory.mixes_counters(apart=rules.pool_counters_apart)
    tried = list(nodes)
    for claim in claims:
        if allocation(claim) is not None:
            continue
        chance.shuffle(tried)
        read = (read_claim(claim),)
        requested = known.of(read, _NO_LIMIT, mixed, 0, in_use.pools)
        made = _allocation(
            requested, Allocator(requested.sharing(read), in_use.state, classes.get, inventory, rules), tried
        )
        in_use.take_in_flight(claim.key, made)
        yield claim, made


def _allocation(requested: ClaimRequests, allocator: Allocator, nodes: Sequence[Node]) -> Raw:
    for node in nodes:
        solution = requested.allocate(allocator, node, allocator.claims)
        if solution is not None:
            (made,) = allocations(solution, allocator.claims, allocator.classes, node.name)
            return made
    raise AllocationError(f"no node has devices for claim {allocator.claims[0]}")
