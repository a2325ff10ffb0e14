"""Which devices would do, were they there: what a remedy for a pod without devices proposes.

Devices that are published somewhere are tried as further ones on a node: the same attributes, in a pool of their own.
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
_MOST_KINDS: Final = 64  # of devices that are tried


def one_more_slice(allocator: Allocator, slices: Iterable[Object], node: Node) -> Raw | None:
    """The slice with the fewest further devices of one kind by which the claims can be allocated on the node."""
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
                continue  # these devices do not do
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
