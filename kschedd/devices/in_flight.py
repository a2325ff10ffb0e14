"""Claims in flight: allocations and reservations of ResourceClaims that the watch has not delivered yet.

From Reserve until the watch event, the devices of an allocation count as in use and other pods wait for its claim; and
a pod's entry in `status.reservedFor` that is being written is not overwritten by the next pod's. Shared by all
instances of DynamicResources, so that none allocates another's devices; reads the cluster state, never modifies it.

Source: Kubernetes v1.34, plugins/dynamicresources/dra_manager.go (claimTracker, inFlightAllocations).
"""

from collections.abc import Iterator

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.devices.allocated import Held, held_devices
from kschedd.devices.claims import allocation, consumer, reserved_for

_MANY = 64  # number of claims with pending entries above which `forget_seen` drops the written ones


@attrs.frozen(eq=False)
class _InFlight:
    key: str
    allocation: Raw
    to_be_created: bool


class ClaimsInFlight:
    def __init__(self, cluster: SchedulerCache) -> None:
        self._cluster = cluster
        self._allocations: dict[str, _InFlight] = {}  # by the claim's uid
        self._reserving: dict[str, dict[str, Raw]] = {}  # claim's uid -> pod's uid -> entry
        self.changes = 0  # how often allocations came or went

    def fork(self, cluster: SchedulerCache) -> "ClaimsInFlight":
        """The same allocations and reservations over a fork of the cluster."""
        forked = ClaimsInFlight(cluster)
        forked._allocations.update(self._allocations)
        forked.changes = self.changes
        forked._reserving.update({claim: entries.copy() for claim, entries in self._reserving.items()})
        return forked

    def __bool__(self) -> bool:
        return bool(self._allocations)

    def __contains__(self, claim: Object) -> bool:
        """Whether an allocation of the claim is in flight."""
        return claim.uid in self._allocations

    def held(self) -> Iterator[Held]:
        """The devices of allocations in flight."""
        return (held for one in self._allocations.values() for held in held_devices(one.allocation))

    def allocate(self, claim: Object, kept: Raw, created_as: str = "") -> None:
        """`created_as`: the name of the claim that will be created for this one."""
        self.changes += 1
        key = f"{claim.namespace}/{created_as}" if created_as else claim.key
        self._allocations[claim.uid] = _InFlight(key, kept, bool(created_as))

    def give_back(self, claim: Object) -> None:
        self.changes += 1
        self._allocations.pop(claim.uid, None)

    def reserve_for(self, claim: Object, pod: Pod) -> list[Raw]:
        """`status.reservedFor` with this pod added, and the pods whose entries are in flight."""
        entries = self._reserving.setdefault(claim.uid, {})
        for entry in reserved_for(claim):
            entries.pop(entry.get("uid") or "", None)
        entries[pod.uid] = consumer(pod)
        return [*reserved_for(claim), *entries.values()]

    def release(self, claim: Object, pod: Pod) -> None:
        """Drop the pod's entry in flight: it is no longer to be written."""
        self._reserving.get(claim.uid, {}).pop(pod.uid, None)

    def forget_seen(self) -> None:
        """Drop allocations and reservations that the watch has delivered, or whose claim no longer exists."""
        for uid, one in list(self._allocations.items()):
            claim = self._cluster.get("ResourceClaim", one.key)
            gone = not one.to_be_created and (claim is None or claim.uid != uid)
            if gone or (claim is not None and allocation(claim) is not None):
                self.changes += 1
                del self._allocations[uid]
        if len(self._reserving) > _MANY:
            claims = {claim.uid: claim for claim in self._cluster.of_kind("ResourceClaim").values()}
            for uid in list(self._reserving):
                seen = {entry.get("uid") for entry in reserved_for(claims[uid])} if uid in claims else None
                if seen is None or not self._reserving[uid].keys() - seen:
                    del self._reserving[uid]
