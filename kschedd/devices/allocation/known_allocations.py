"""A cache of the devices found for equal claims, valid until the inputs of the search change.

The search depends on a node's pools and on which of their devices are in use, but not on pods or on the node itself.
The result is therefore valid on every node with the same pools, for every pod with equal requests. Results refer to
requests by identity, so equal claims share their request objects. The cache contains found allocations, failed
searches, and information about the candidates (`known_candidates`). A search that raised an exception is repeated.

A change of the used devices in a pool (`InUse.pools`) invalidates the results for this pool. A change of slices,
classes or rules invalidates all results. Nothing is cached if pools share counters (`Inventory.mixes_counters`).
"""

import json
from collections.abc import Hashable, Iterable
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.cache.versions import ChangeLog
from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.known_candidates import KnownCandidates
from kschedd.devices.allocation.solution import Allocation
from kschedd.devices.claims import Claim, DeviceRequest
from kschedd.devices.pools.inventory import PoolKey
from kschedd.devices.pools.on_node import DeviceCandidates

_MOST: Final = 64  # sets of claims
_MOST_NODES: Final = 200_000


@attrs.define(eq=False)
class _InPools:
    """Results for some pools; `is_current` is false after a change of the used devices in any of them."""

    known: KnownCandidates
    is_current: bool = False
    found: Allocation | None = None

    def invalidate(self, changed: Iterable[PoolKey]) -> None:
        self.is_current = False
        for pool in changed:
            self.known.forget(pool)


@attrs.define(eq=False)
class ClaimRequests:
    """The requests of a set of claims, and the results for these requests."""

    requests: tuple[tuple[DeviceRequest, ...], ...]  # by claim
    _by_pools: dict[int, _InPools] = attrs.field(factory=dict)  # results by identity of the candidates
    _with_pool: dict[PoolKey, set[int]] = attrs.field(factory=dict)
    _held_stamp: int = -1

    def sharing(self, claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
        """Return the claims with the equal request objects of this entry in place of their own."""
        each = zip(claims, self.requests, strict=True)
        return tuple(attrs.evolve(claim, requests=requests) for claim, requests in each)

    def allocate(self, allocator: Allocator, node: Node, claims: tuple[Claim, ...]) -> Allocation | None:
        """Allocate devices like `Allocator.allocate`, for claims that share the requests."""
        candidates = allocator.candidates(node)
        here = self._by_pools.get(id(candidates))
        if here is None:
            here = self._add(candidates)
        if not here.is_current:
            here.found = allocator.allocate(node, claims, here.known)
            here.is_current = True
        return here.found

    def catch_up(self, held: ChangeLog[PoolKey]) -> None:
        """Invalidate the results for pools whose used devices have changed."""
        changed = held.since(self._held_stamp)
        self._held_stamp = held.at
        if changed is None:
            self._forget_all()
            return
        affected: dict[int, list[PoolKey]] = {}
        for pool in dict.fromkeys(changed):
            for key in self._with_pool.get(pool, ()):
                affected.setdefault(key, []).append(pool)
        for key, pools in affected.items():
            here = self._by_pools[key]
            if here.is_current:
                here.invalidate(pools)
            else:  # not used since an earlier change; perhaps no node has these pools any more
                self._drop(key)

    def _add(self, candidates: DeviceCandidates) -> _InPools:
        if len(self._by_pools) >= _MOST_NODES:
            self._forget_all()
        key = id(candidates)
        here = self._by_pools[key] = _InPools(KnownCandidates(candidates))
        for pool in candidates.spans:
            self._with_pool.setdefault(pool, set()).add(key)
        return here

    def _drop(self, key: int) -> None:
        for pool in self._by_pools.pop(key).known.candidates.spans:
            self._with_pool[pool].discard(key)

    def _forget_all(self) -> None:
        self._by_pools.clear()
        self._with_pool.clear()


class KnownAllocations:
    def __init__(self) -> None:
        self._stamp: Hashable = -1
        self._known: dict[tuple[str, int], ClaimRequests] = {}

    def of(
        self, claims: tuple[Claim, ...], most_steps: int, mixed: bool, stamp: Hashable, held: ChangeLog[PoolKey]
    ) -> ClaimRequests:
        """Return the cached results for claims with equal requests and an equal limit of steps.

        `mixed` is true if pools share counters. `stamp` is the number of changes of slices, classes and rules. `held`
        contains the number of changes of each pool's used devices.
        """
        if stamp != self._stamp or mixed or len(self._known) >= _MOST:
            self._known.clear()
        self._stamp = stamp
        key = (json.dumps([claim.obj.spec.get("devices") for claim in claims], sort_keys=True), most_steps)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = ClaimRequests(tuple(claim.requests for claim in claims))
        known.catch_up(held)
        return known
