"""Devices that allocated claims use, as a whole or in shares of their capacity.

Devices allocated with admin access are not treated as used.

Source: Kubernetes v1.34 and v1.36, scheduler plugins/dynamicresources/allocateddevices.go (foreachAllocatedDevice);
v1.36, dynamic-resource-allocation/structured/internal/allocatedstate.go (IsDeviceAllocated).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.cache.versions import ChangeLog
from kschedd.devices.claims import allocation
from kschedd.devices.pools.capacity import Amounts, add
from kschedd.devices.pools.inventory import DeviceId, PoolKey


@attrs.frozen
class Held:
    """A device of an allocated claim."""

    device: DeviceId
    share: bool = False
    consumed: tuple[tuple[str, str], ...] | None = None  # consumed amount of each capacity, for a share


_Holds = tuple[Held, ...]


def held_devices(allocated: Raw | None) -> Iterator[Held]:
    """Yield the devices that an allocation uses."""
    for result in ((allocated or {}).get("devices") or {}).get("results") or ():
        if result.get("adminAccess"):
            continue
        device = DeviceId(result.get("driver") or "", result.get("pool") or "", result.get("device") or "")
        consumed: Amounts | None = result.get("consumedCapacity")
        if result.get("shareID") is None:
            yield Held(device)
        else:
            yield Held(device, True, None if consumed is None else tuple(sorted(consumed.items())))


@attrs.define(eq=False)
class AllocatedState:
    """The used devices and their counts; readers get changes immediately."""

    whole: set[DeviceId] = attrs.field(factory=set)
    shared: set[DeviceId] = attrs.field(factory=set)
    capacity: dict[DeviceId, dict[str, Fraction]] = attrs.field(factory=dict)
    """Capacity consumed by the shares of a device, if they state it."""
    # number of claims by device and by type of allocation (whole or share)
    _holders: Counter[tuple[DeviceId, bool]] = attrs.field(factory=Counter)
    # by device: number of shares with recorded consumption
    _consumers: Counter[DeviceId] = attrs.field(factory=Counter)

    @classmethod
    def of(cls, held: Iterable[Held]) -> "AllocatedState":
        made = cls()
        for one in held:
            made.add(one)
        return made

    def __contains__(self, device: DeviceId) -> bool:
        return device in self.whole or device in self.shared

    def add(self, one: Held) -> None:
        device = one.device
        (self.shared if one.share else self.whole).add(device)
        self._holders[device, one.share] += 1
        if one.consumed is not None:
            self._consumers[device] += 1
            add(self.capacity.setdefault(device, {}), dict(one.consumed))

    def remove(self, one: Held) -> None:
        """Remove a used device that was added before."""
        device, key = one.device, (one.device, one.share)
        self._holders[key] -= 1
        if not self._holders[key]:
            del self._holders[key]
            (self.shared if one.share else self.whole).discard(device)
        if one.consumed is not None:
            add(self.capacity[device], dict(one.consumed), -1)
            self._consumers[device] -= 1
            if not self._consumers[device]:
                del self._consumers[device], self.capacity[device]


@attrs.define(eq=False)
class InUse:
    """Devices that claims use through their allocation, or else through an allocation in flight.

    `pools` contains each pool's number of changes, which is independent of the cluster's versions.
    """

    state: AllocatedState = attrs.field(factory=AllocatedState)
    pools: ChangeLog[PoolKey] = attrs.field(factory=ChangeLog)
    _by_claim: dict[str, _Holds] = attrs.field(factory=dict)
    _in_flight: dict[str, _Holds] = attrs.field(factory=dict)

    def take_all(self, claims: Mapping[str, Object]) -> None:
        """Replace all claims; the keys of the mapping are claim keys."""
        for key in self._by_claim.keys() - claims.keys():
            self.take(key, None)
        for key, claim in claims.items():
            self.take(key, claim)

    def take(self, key: str, claim: Object | None) -> None:
        """Record the current version of a claim; None: the claim was deleted."""
        self._put(self._by_claim, key, None if claim is None else allocation(claim))

    def take_in_flight(self, key: str, allocated: Raw | None) -> None:
        """Record a claim's allocation in flight; None: it is no longer in flight."""
        self._put(self._in_flight, key, allocated)

    def _put(self, holders: dict[str, _Holds], key: str, allocated: Raw | None) -> None:
        before, held = self._held(key), tuple(held_devices(allocated))
        if held:
            holders[key] = held
        else:
            holders.pop(key, None)
        now = self._held(key)
        if now == before:
            return
        for one in before:
            self.state.remove(one)
        for one in now:
            self.state.add(one)
        for pool in {(one.device.driver, one.device.pool): None for one in (*before, *now)}:
            self.pools.add(pool, self.pools.at + 1)

    def _held(self, key: str) -> _Holds:
        return self._by_claim.get(key) or self._in_flight.get(key, ())
