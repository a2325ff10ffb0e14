"""Devices found on nodes for claims that ask for the same, kept while nothing changes that the search depends on.

A preemptor, and whoever is tried again, asks the same nodes the same: the search for devices does not look at pods, so
victims do not change what comes of it. What is found refers to requests by identity, so claims that ask for the same
share these. Kept is what was found, and that nothing was; a search that failed is made again.

Invalidated: by the stamp of DRAManager (slices, claims, classes, allocations in flight), of one node by another object
of that node.
"""

import json
from collections.abc import Hashable
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.devices.allocator import Allocator
from kschedd.devices.claims import Claim, DeviceRequest
from kschedd.devices.solution import Allocation

_MOST: Final = 64  # sets of claims
_MOST_NODES: Final = 200_000


@attrs.frozen(eq=False)
class AskedFor:
    """What some set of claims asks for, and what was found for it."""

    requests: tuple[tuple[DeviceRequest, ...], ...]  # of each claim
    _by_node: dict[str, tuple[Node, Allocation | None]] = attrs.field(factory=dict)

    def sharing(self, claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
        """The claims with these requests in the place of their equal ones."""
        each = zip(claims, self.requests, strict=True)
        return tuple(attrs.evolve(claim, requests=requests) for claim, requests in each)

    def allocate(self, allocator: Allocator, node: Node) -> Allocation | None:
        """As `Allocator.allocate` for its own claims, which share the requests."""
        known = self._by_node.get(node.name)
        if known is None or known[0] is not node:
            if len(self._by_node) >= _MOST_NODES:
                self._by_node.clear()
            known = self._by_node[node.name] = (node, allocator.allocate(node))
        return known[1]


class KnownAllocations:
    def __init__(self) -> None:
        self._stamp: Hashable = None
        self._known: dict[tuple[str, int], AskedFor] = {}

    def of(self, claims: tuple[Claim, ...], most_steps: int, stamp: Hashable) -> AskedFor:
        """What is known of claims that ask for what these do, searched for with as many steps at most."""
        if stamp != self._stamp or len(self._known) >= _MOST:
            self._known.clear()
            self._stamp = stamp
        key = (json.dumps([claim.obj.spec.get("devices") for claim in claims], sort_keys=True), most_steps)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = AskedFor(tuple(claim.requests for claim in claims))
        return known
