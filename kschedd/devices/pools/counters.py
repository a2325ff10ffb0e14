"""Shared counters of partitionable devices: the amounts available in a pool, and the consumption by new allocations.

A partition of a physical device consumes counters of its pool ("memory-slice-0: 1"). The available amount is the total
in the pool's counter sets minus the consumption by devices allocated on any node. A further device can be allocated if
no counter of the pool becomes negative.

In 1.36.3, counters are stored by the name of the pool, without its driver. If two drivers have pools of the same name,
the counters of the pool that is read first are used for both. The result depends on this order, so one `Available` is
used for all nodes in a scheduling attempt. Since 1.37 pools of two drivers are separate.

Source: Kubernetes v1.36 and v1.37, dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
(checkAvailableCounters, deallocateCountersForDevice).
"""

from collections.abc import Callable
from fractions import Fraction

import attrs

from kschedd.devices.pools.inventory import Device, DeviceId
from kschedd.devices.pools.on_node import Pool

_PoolName = tuple[str, str]
_Counts = dict[tuple[str, str], Fraction]  # amounts by counter set and counter


@attrs.frozen(eq=False)
class Available:
    """The counters of pools, minus the consumption by allocated devices; computed once for each pool."""

    is_allocated: Callable[[DeviceId], bool]
    apart: bool = False  # True if pools of different drivers with the same name have separate counters
    _left: dict[_PoolName, _Counts] = attrs.field(factory=dict)

    def name(self, pool: Pool) -> _PoolName:
        """Return the name under which the pool's counters are stored."""
        return (pool.driver if self.apart else "", pool.name)

    def of(self, pool: Pool) -> _Counts:
        name = self.name(pool)
        left = self._left.get(name)
        if left is None:
            left = self._left[name] = self._computed(pool)
        return left

    def _computed(self, pool: Pool) -> _Counts:
        left = {(of_set, name): value for of_set, held in pool.counter_sets.items() for name, value in held.items()}
        devices = (device for one in (*pool.slices, *pool.others) for device in one.devices)
        for device in devices:
            if not device.counters or not self.is_allocated(device.id):
                continue
            for of_set, name, amount in device.counters:
                if (of_set, name) in left:
                    left[of_set, name] -= amount
        return left


@attrs.frozen(eq=False)
class Consumed:
    """The consumption by devices taken in one search."""

    available: Available
    _taken: dict[_PoolName, _Counts] = attrs.field(factory=dict)

    def take(self, pool: Pool, device: Device) -> bool:
        """Add the device's consumption if enough is available in its pool; return whether the consumption was added."""
        taken = self._taken.setdefault(self.available.name(pool), {})
        for of_set, name, amount in device.counters:
            taken[of_set, name] = taken.get((of_set, name), Fraction()) + amount
        if all(left >= taken.get(counter, 0) for counter, left in self.available.of(pool).items()):
            return True
        self.give_back(pool, device)
        return False

    def give_back(self, pool: Pool, device: Device) -> None:
        taken = self._taken[self.available.name(pool)]
        for of_set, name, amount in device.counters:
            taken[of_set, name] -= amount
