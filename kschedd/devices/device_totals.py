"""The total and the allocated number of devices that provide an extended resource on a node, for scoring.

If a node's device plugins do not provide a resource, the devices of its DeviceClass are its capacity, and the allocated
devices are its usage. Whole devices and shares are not distinguished, and incomplete pools, old pools and taints are
ignored, as in 1.36.3.

Source: Kubernetes v1.36, plugins/noderesources/resource_allocation.go (calculateDRAResourceTotals). Upstream's
NodeResourcesBalancedAllocation crashes if such a class has selectors; kschedd counts devices as in NodeResourcesFit.
"""

from collections.abc import Iterable, Mapping, Sequence

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, Raw
from kschedd.api.selecting.requirements import SelectorError
from kschedd.cache.scoring_columns import Fractions
from kschedd.cache.table import NodeTable, Rows
from kschedd.devices.dra_manager import DRAManager
from kschedd.devices.extended_resources import may_be_devices
from kschedd.devices.pools.allocated import AllocatedState
from kschedd.devices.pools.inventory import Device, Inventory
from kschedd.devices.selection import SelectorFailure, selects

_Total = tuple[int, int]  # number of devices, and number of allocated devices


def with_devices(
    fractions: Fractions,
    names: Sequence[str],
    requested: Sequence[int],
    table: NodeTable,
    rows: Rows,
    manager: DRAManager,
) -> Fractions:
    """Return the utilization; for resources that no device plugin of the node provides, devices are counted."""
    classes = manager.resolver.classes()
    if not classes or not any(name in classes for name in names):
        return fractions
    totals: _Totals | None = None
    fractions = attrs.evolve(fractions, used=fractions.used.copy(), capacity=fractions.capacity.copy())
    for place, used, capacity in fractions.columns:
        device_class = classes.get(names[place]) if may_be_devices(names[place]) else None
        without = [] if device_class is None else np.flatnonzero(capacity == 0).tolist()
        if device_class is not None and without:
            totals = totals or _Totals(manager.inventory(), manager.allocated())
            for at in without:
                node = table.nodes[int(rows[at])]
                devices, allocated = (0, 0) if node is None else totals.of(device_class, node)
                if devices:
                    used[at], capacity[at] = allocated + requested[place], devices
    return fractions


@attrs.frozen(eq=False)
class _Totals:
    inventory: Inventory
    allocated: AllocatedState

    def of(self, device_class: Object, node: Node) -> _Total:
        """Return the totals of a class on a node; (0, 0) if a selector fails."""
        selectors: Sequence[Raw] = device_class.spec.get("selectors") or ()
        try:
            found = [device for device in self._devices(node) if _matches(selectors, device)]
        except (SelectorError, SelectorFailure):
            return (0, 0)
        return (len(found), sum(device.id in self.allocated for device in found))

    def _devices(self, node: Node) -> Iterable[Device]:
        for one in self.inventory.usable_on(node):
            if one.per_device:
                yield from (device for device in one.devices if device.reach.includes(node))
            elif not one.reach or one.reach.includes(node):
                yield from one.devices


def _matches(selectors: Sequence[Mapping[str, Raw]], device: Device) -> bool:
    return all(selects(each["cel"].get("expression") or "", device) for each in selectors if each.get("cel"))
