"""Additional devices that would satisfy a pod's claims, proposed by a remedy.

Published devices are tried as additional ones on a node: with the same attributes, in a pool of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.solution import AllocationError, NodeFailure

Raw = Mapping[str, Any]
_COUNTS: Final = (1, 2, 4, 8)
_MOST_KINDS: Final = 64  # limit of different devices to try


def one_more_slice(allocator: Allocator, slices: Iterable[Object], node: Node) -> Raw | None:
    """Return the slice with the fewest additional devices of one kind that makes the claims allocatable on the node."""
    published = list(slices)
    kinds: dict[tuple[str, str], Raw] = {}
    for obj in published:
        for device in obj.spec.get("devices") or ():
            alike = {name: value for name, value in device.items() if name != "name"}
            kinds.setdefault((str(obj.spec.get("driver")), repr(sorted(alike.items()))), device)
    for count in _COUNTS:
        for (driver, _), device in list(kinds.items())[:_MOST_KINDS]:
            made = _slice(driver, [{**device, "name": f"more-{n}"} for n in range(count)], node.name)
            inventory = allocator.inventory.updated([*published, Object.from_raw(made)])
            try:
                if attrs.evolve(allocator, inventory=inventory).allocate(node) is not None:
                    return made
            except (AllocationError, NodeFailure):
                continue  # these devices do not suffice
    return None


def _slice(driver: str, devices: Sequence[Raw], node_name: str) -> Raw:
    name = f"more-on-{node_name}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "nodeName": node_name,
            "devices": list(devices),
        },
    }
