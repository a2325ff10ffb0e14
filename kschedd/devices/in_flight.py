"""Claims in flight: what has been decided for ResourceClaims and the watch has not shown yet.

From Reserve until then the devices of an allocation count as used, and other pods wait for its claim; and a pod whose
entry in `status.reservedFor` is being written is not written over by the next one. Shared by all instances of
DynamicResources, so that none gives away what another has kept; it reads the cluster and changes nothing in it.

Source: Kubernetes v1.34, plugins/dynamicresources/dra_manager.go (claimTracker, inFlightAllocations).
"""

from collections.abc import Iterator

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.devices.claims import allocation, consumer, devices_of, reserved_for
from kschedd.devices.inventory import DeviceId

_MANY = 64  # claims with entries under way, from which on those that are written are looked for


class ClaimsInFlight:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._allocations: dict[str, tuple[str, Raw]] = {}  # claim's uid -> (key, allocation)
        self._reserving: dict[str, dict[str, Raw]] = {}  # claim's uid -> pod's uid -> entry

    def __bool__(self) -> bool:
        return bool(self._allocations)

    def __contains__(self, claim: Object) -> bool:
        """Whether the claim is being allocated."""
        return claim.uid in self._allocations

    def devices(self) -> Iterator[DeviceId]:
        """The devices that are being allocated."""
        return (device for _, kept in self._allocations.values() for device in devices_of(kept))

    def allocate(self, claim: Object, kept: Raw) -> None:
        self._allocations[claim.uid] = (claim.key, kept)

    def give_back(self, claim: Object) -> None:
        self._allocations.pop(claim.uid, None)

    def reserve_for(self, claim: Object, pod: Pod) -> list[Raw]:
        """`status.reservedFor` with this pod, and with those whose entry is on its way."""
        entries = self._reserving.setdefault(claim.uid, {})
        for entry in reserved_for(claim):
            entries.pop(entry.get("uid") or "", None)
        entries[pod.uid] = consumer(pod)
        return [*reserved_for(claim), *entries.values()]

    def release(self, claim: Object, pod: Pod) -> None:
        """The pod's entry is not to be written any more."""
        self._reserving.get(claim.uid, {}).pop(pod.uid, None)

    def forget_seen(self) -> None:
        """Allocations and reservations that the watch has shown by now, or whose claim is gone, need no keeping."""
        for uid, (key, _) in list(self._allocations.items()):
            claim = self._cluster.get("ResourceClaim", key)
            if claim is None or claim.uid != uid or allocation(claim) is not None:
                del self._allocations[uid]
        if len(self._reserving) > _MANY:
            claims = {claim.uid: claim for claim in self._cluster.of_kind("ResourceClaim").values()}
            for uid in list(self._reserving):
                seen = {entry.get("uid") for entry in reserved_for(claims[uid])} if uid in claims else None
                if seen is None or not self._reserving[uid].keys() - seen:
                    del self._reserving[uid]
