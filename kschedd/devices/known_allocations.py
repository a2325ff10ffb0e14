"""Devices found for claims that ask for the same, kept while nothing changes that the search depends on.

The search for devices looks at a node's pools and at which of their devices are held, not at pods and not at the node
itself: so what was found for some pools holds on every node that has the same ones, for a preemptor, whoever is tried
again, and the next pod that asks for the same. What is found refers to requests by identity, so claims that ask for the
same share these. Kept is what was found, and that nothing was; a search that failed is made again.

Invalidated: what was found in a pool by a change of what is held there (`InUse.pools`); all by a change of slices or
classes; all, where counters of pools are mixed up (`Inventory.mixes_counters`), by any change of what is held.
"""

import json
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.cache.versions import ChangeLog
from kschedd.devices.allocator import Allocator
from kschedd.devices.claims import Claim, DeviceRequest
from kschedd.devices.inventory import Inventory, PoolKey
from kschedd.devices.pools import Pool
from kschedd.devices.solution import Allocation

_MOST: Final = 64  # sets of claims
_MOST_NODES: Final = 200_000

_Pools = tuple[Pool, ...]


@attrs.frozen(eq=False)
class AskedFor:
    """What some set of claims asks for, and what was found for it."""

    requests: tuple[tuple[DeviceRequest, ...], ...]  # of each claim
    _by_pools: dict[int, tuple[_Pools, Allocation | None]] = attrs.field(factory=dict)  # by their identity
    _with_pool: dict[PoolKey, set[int]] = attrs.field(factory=dict)

    def sharing(self, claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
        """The claims with these requests in the place of their equal ones."""
        each = zip(claims, self.requests, strict=True)
        return tuple(attrs.evolve(claim, requests=requests) for claim, requests in each)

    def allocate(self, allocator: Allocator, node: Node, claims: tuple[Claim, ...]) -> Allocation | None:
        """As `Allocator.allocate` for claims that share the requests."""
        pools = allocator.pools(node)
        known = self._by_pools.get(id(pools))
        if known is None:
            if len(self._by_pools) >= _MOST_NODES:
                self.forget_all()
            known = self._by_pools[id(pools)] = (pools, allocator.allocate(node, claims))
            for pool in pools:
                self._with_pool.setdefault((pool.driver, pool.name), set()).add(id(pools))
        return known[1]

    def forget(self, pool: PoolKey) -> None:
        """What is held in this pool has changed."""
        for pools in self._with_pool.pop(pool, ()):
            self._by_pools.pop(pools, None)

    def forget_all(self) -> None:
        self._by_pools.clear()
        self._with_pool.clear()


class KnownAllocations:
    def __init__(self) -> None:
        self._stamp = -1
        self._held_stamp = -1
        self._known: dict[tuple[str, int], AskedFor] = {}

    def of(
        self, claims: tuple[Claim, ...], most_steps: int, inventory: Inventory, stamp: int, held: ChangeLog[PoolKey]
    ) -> AskedFor:
        """What is known of claims that ask for what these do, searched for with as many steps at most.

        `stamp`: of slices and classes; `held`: the pools where what is held changed.
        """
        changed = held.since(self._held_stamp)
        if (
            changed is None
            or (changed and inventory.mixes_counters)
            or stamp != self._stamp
            or len(self._known) >= _MOST
        ):
            self._known.clear()
        else:
            for pool in dict.fromkeys(changed):
                for each in self._known.values():
                    each.forget(pool)
        self._stamp, self._held_stamp = stamp, held.at
        key = (json.dumps([claim.obj.spec.get("devices") for claim in claims], sort_keys=True), most_steps)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = AskedFor(tuple(claim.requests for claim in claims))
        return known
