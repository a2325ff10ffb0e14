"""Allocates claims that no pod uses: devices that are taken when a measurement begins.

Source: Kubernetes v1.34, test/integration/scheduler_perf/dra.go (allocResourceClaimsOp).
Errors: AllocationError.
"""

import random
from collections.abc import Iterator, Mapping, Sequence

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, Raw
from kschedd.devices.allocated import AllocatedState, held_devices
from kschedd.devices.allocator import Allocator
from kschedd.devices.claims import allocation, read_claim
from kschedd.devices.inventory import Inventory
from kschedd.devices.results import allocations
from kschedd.devices.rules import DeviceRules
from kschedd.devices.solution import AllocationError


def allocated(
    claims: Sequence[Object],
    others: Sequence[Object],
    nodes: Sequence[Node],
    slices: Sequence[Object],
    classes: Mapping[str, Object],
    rules: DeviceRules,
    chance: random.Random,
) -> Iterator[tuple[Object, Raw]]:
    """Those of the claims that are not allocated, each with an allocation on some node that has the devices.

    `others`: claims that may hold devices, these among them or not.
    """
    known = {claim.uid: claim for claim in (*others, *claims)}
    in_use = AllocatedState.of(held for claim in known.values() for held in held_devices(allocation(claim)))
    inventory = Inventory().updated(slices)
    tried = list(nodes)
    for claim in claims:
        if allocation(claim) is not None:
            continue
        chance.shuffle(tried)
        made = _allocation(Allocator((read_claim(claim),), in_use, classes.get, inventory, rules), tried)
        for held in held_devices(made):
            in_use.add(held)
        yield claim, made


def _allocation(allocator: Allocator, nodes: Sequence[Node]) -> Raw:
    for node in nodes:
        solution = allocator.allocate(node)
        if solution is not None:
            (made,) = allocations(solution, allocator.claims, allocator.classes, node.name)
            return made
    raise AllocationError(f"no node has devices for claim {allocator.claims[0]}")
