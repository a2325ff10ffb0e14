"""The devices that allocated claims hold: given out whole, or in shares of their capacity.

Devices that are used with admin access are not held.

Source: Kubernetes v1.34 and v1.36, scheduler plugins/dynamicresources/allocateddevices.go (foreachAllocatedDevice);
v1.36, dynamic-resource-allocation/structured/internal/allocatedstate.go (IsDeviceAllocated).
"""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.cache.versions import Versions
from kschedd.devices.capacity import Amounts, add
from kschedd.devices.claims import allocation
from kschedd.devices.inventory import DeviceId


@attrs.frozen
class Held:
    """One device of an allocated claim."""

    device: DeviceId
    share: bool = False
    consumed: tuple[tuple[str, str], ...] | None = None  # of a share: capacity and amount


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


@attrs.frozen(eq=False)
class AllocatedState:
    whole: frozenset[DeviceId] = frozenset()
    shared: frozenset[DeviceId] = frozenset()
    capacity: Mapping[DeviceId, Mapping[str, Fraction]] = attrs.field(factory=dict)
    """What the shares of a device consume, of those that say it."""

    @classmethod
    def of(cls, held: Iterable[Held]) -> "AllocatedState":
        whole: set[DeviceId] = set()
        shared: set[DeviceId] = set()
        capacity: dict[DeviceId, dict[str, Fraction]] = {}
        for one in held:
            (shared if one.share else whole).add(one.device)
            if one.consumed is not None:
                add(capacity.setdefault(one.device, {}), dict(one.consumed))
        return cls(frozenset(whole), frozenset(shared), capacity)

    def __contains__(self, device: DeviceId) -> bool:
        return device in self.whole or device in self.shared


@attrs.define(eq=False)
class InUse:
    """Cache of what allocated claims hold, updated incrementally by claim."""

    _stamp: int = -1
    _by_claim: dict[str, tuple[Object, tuple[Held, ...]]] = attrs.field(factory=dict)
    _state: AllocatedState = attrs.field(factory=AllocatedState)

    def state(
        self, claims: Mapping[str, Object], versions: Versions, in_flight: Iterable[Held] | None = None
    ) -> AllocatedState:
        """All that claims hold; `in_flight`: what is held besides."""
        if self._stamp < versions.latest("ResourceClaim"):
            known, self._by_claim = self._by_claim, {}
            changed = len(known) != len(claims)
            for key, claim in claims.items():
                entry = known.get(key)
                if entry is None or entry[0] is not claim:
                    held = tuple(held_devices(allocation(claim)))
                    changed = changed or entry is None or entry[1] != held
                    entry = (claim, held)
                self._by_claim[key] = entry
            if changed:
                self._state = AllocatedState.of(self._held())
            self._stamp = versions.now
        return self._state if in_flight is None else AllocatedState.of([*self._held(), *in_flight])

    def _held(self) -> Iterator[Held]:
        return (held for _, holds in self._by_claim.values() for held in holds)
