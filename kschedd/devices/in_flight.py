"""Claims in flight: allocations and reservations of ResourceClaims that the watch has not delivered yet.

From Reserve until the watch event, the devices of an allocation are treated as in use, and other pods wait for the
claim. While a pod's entry in `status.reservedFor` is being written, the entry of another pod must not overwrite this
entry. All instances of DynamicResources share the claims in flight, so that no device is allocated twice.

Source: Kubernetes v1.34, plugins/dynamicresources/dra_manager.go (claimTracker, inFlightAllocations).
"""

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.devices.claims import allocation, consumer, reserved_for
from kschedd.devices.pools.allocated import InUse


@attrs.frozen(eq=False)
class _InFlight:
    key: str
    allocation: Raw
    to_be_created: bool


class ClaimsInFlight:
    def __init__(self, cluster: SchedulerCache, in_use: InUse) -> None:
        self._cluster = cluster
        self._in_use = in_use
        self._allocations: dict[str, _InFlight] = {}  # by the claim's uid
        self._uids: dict[str, str] = {}  # claim key -> UID of the claim with an allocation in flight
        self._reserving: dict[str, dict[str, Raw]] = {}  # claim key -> entries in flight by UID of the pod

    def fork(self, cluster: SchedulerCache, in_use: InUse) -> "ClaimsInFlight":
        """Return a copy of these allocations and reservations for a fork of the cluster."""
        forked = ClaimsInFlight(cluster, in_use)
        for uid, one in self._allocations.items():
            forked._put(uid, one)
        forked._reserving.update({claim: entries.copy() for claim, entries in self._reserving.items()})
        return forked

    def __contains__(self, claim: Object) -> bool:
        """Return whether an allocation of the claim is in flight."""
        return claim.uid in self._allocations

    def allocate(self, claim: Object, kept: Raw, created_as: str = "") -> None:
        """Record an allocation in flight; `created_as` is the name of a claim that will be created."""
        key = f"{claim.namespace}/{created_as}" if created_as else claim.key
        self._put(claim.uid, _InFlight(key, kept, bool(created_as)))

    def _put(self, uid: str, one: _InFlight) -> None:
        # allocations of this claim, or of an earlier claim of this name
        for earlier in (uid, self._uids.get(one.key)):
            if earlier in self._allocations:
                self._drop(earlier)
        self._allocations[uid] = one
        self._uids[one.key] = uid
        self._in_use.take_in_flight(one.key, one.allocation)

    def give_back(self, claim: Object) -> None:
        if claim.uid in self._allocations:
            self._drop(claim.uid)

    def _drop(self, uid: str) -> None:
        one = self._allocations.pop(uid)
        del self._uids[one.key]
        self._in_use.take_in_flight(one.key, None)

    def reserve_for(self, claim: Object, pod: Pod) -> list[Raw]:
        """Return `status.reservedFor` with this pod, and with the pods whose entries are in flight."""
        entries = self._reserving.setdefault(claim.key, {})
        for entry in reserved_for(claim):
            entries.pop(entry.get("uid") or "", None)
        entries[pod.uid] = consumer(pod)
        return [*reserved_for(claim), *entries.values()]

    def release(self, claim: Object, pod: Pod) -> None:
        """Drop the pod's entry in flight, because the entry will not be written."""
        self._reserving.get(claim.key, {}).pop(pod.uid, None)

    def seen(self, key: str, claim: Object | None) -> None:
        """Process a version of the claim from the watch; None: the claim was deleted.

        Data in this version are no longer in flight, even if the next version lacks them, because the claim's user may
        be gone.
        """
        if key in self._reserving:
            self._reservations_seen(key, claim)
        uid = self._uids.get(key)
        if uid is not None:
            gone = not self._allocations[uid].to_be_created and (claim is None or claim.uid != uid)
            if gone or (claim is not None and allocation(claim) is not None):
                self._drop(uid)

    def _reservations_seen(self, key: str, claim: Object | None) -> None:
        entries = self._reserving[key]
        for entry in () if claim is None else reserved_for(claim):
            entries.pop(entry.get("uid") or "", None)
        if claim is None or not entries:
            del self._reserving[key]

    def see_all(self) -> None:
        """Process all claims as `seen` does, from their latest versions only."""
        for key in [*self._uids, *self._reserving]:
            self.seen(key, self._cluster.get("ResourceClaim", key))
