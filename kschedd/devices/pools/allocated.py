"""The devices that allocated claims hold: given out whole, or in shares of their capacity.

Devices that are used with admin access are not held.

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
    """One device of an allocated claim."""

    device: DeviceId
    share: bool = False
    consumed: tuple[tuple[str, str], ...] | None = None  # of a share: capacity and amount


_Holds = tuple[Held, ...]


def held_devices(allocated: Raw | None) -> Iterator[Held]:
    """The devices that an allocation keeps from others."""
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
    """What is held, counted by device: whoever reads it sees what comes and goes."""

    whole: set[DeviceId] = attrs.field(factory=set)
    shared: set[DeviceId] = attrs.field(factory=set)
    capacity: dict[DeviceId, dict[str, Fraction]] = attrs.field(factory=dict)
    """What the shares of a device consume, of those that say it."""
    _holders: Counter[tuple[DeviceId, bool]] = attrs.field(factory=Counter)  # by device, and whether in shares
    _consumers: Counter[DeviceId] = attrs.field(factory=Counter)  # shares that say what they consume

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
        """Take back what was added."""
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
    """What claims hold by their allocation or, as long as they have none, by one that is in flight.

    `pools`: where that changed. Its dates count changes here, and have nothing to do with those of the cluster.
    """

    state: AllocatedState = attrs.field(factory=AllocatedState)
    pools: ChangeLog[PoolKey] = attrs.field(factory=ChangeLog)
    _by_claim: dict[str, _Holds] = attrs.field(factory=dict)
    _in_flight: dict[str, _Holds] = attrs.field(factory=dict)

    def take_all(self, claims: Mapping[str, Object]) -> None:
        """These are all claims, by key."""
        for key in self._by_claim.keys() - claims.keys():
            self.take(key, None)
        for key, claim in claims.items():
            self.take(key, claim)

    def take(self, key: str, claim: Object | None) -> None:
        """The claim as it is now; None: it is gone."""
        self._put(self._by_claim, key, None if claim is None else allocation(claim))

    def take_in_flight(self, key: str, allocated: Raw | None) -> None:
        """This allocation of the claim is in flight; None: no longer."""
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
