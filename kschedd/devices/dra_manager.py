"""DRAManager: the state of devices that the plugins of all profiles share.

The state consists of the published devices, the devices that claims use, allocations in flight, and the DeviceClasses
that provide extended resources. The manager reads the cluster and never modifies it. Each part is updated when a
plugin reads it.

Source: Kubernetes v1.34 and v1.36, plugins/dynamicresources/dra_manager.go.
"""

from collections.abc import Hashable

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.devices.allocation.known_allocations import ClaimRequests, KnownAllocations
from kschedd.devices.claims import Claim
from kschedd.devices.extended_resources import CreatedClaims, DeviceClassResolver
from kschedd.devices.in_flight import ClaimsInFlight
from kschedd.devices.pools.allocated import AllocatedState, InUse
from kschedd.devices.pools.inventory import Inventory
from kschedd.devices.pools.taint_rules import KIND, TaintedSlices
from kschedd.devices.rules import DeviceRules


class DRAManager:
    def __init__(self, cluster: SchedulerCache) -> None:
        self._cluster = cluster
        self._in_use = InUse()
        self._created = CreatedClaims()
        self._changes = cluster.versions.follow("ResourceClaim")
        self._changes_stamp = -1
        self.in_flight = ClaimsInFlight(cluster, self._in_use)
        self.resolver = DeviceClassResolver(cluster)
        self.known = KnownAllocations()
        self._inventory = Inventory()
        self._inventory_stamp = -1
        self._by_rules = False  # True if the taints of DeviceTaintRules are included
        self._tainted = TaintedSlices()

    def fork(self, cluster: SchedulerCache) -> "DRAManager":
        """Return a manager for a fork of the cluster, with the same allocations and reservations in flight."""
        forked = DRAManager(cluster)
        forked.in_flight = self.in_flight.fork(cluster, forked._in_use)
        # A fork only has the latest versions, so claims that were observed earlier must also be recorded in it.
        for key, claim in self._changes.since(self._changes_stamp) or ():
            forked.in_flight.seen(key, claim)
        return forked

    def catch_up(self) -> None:
        """Process the changes of claims since the last call; call this method before an attempt reads claims."""
        changes = self._changes.since(self._changes_stamp)
        if changes is None:
            claims = self._cluster.of_kind("ResourceClaim")
            self._in_use.take_all(claims)
            self._created.take_all(claims)
            self.in_flight.see_all()
        else:
            for key, claim in changes:
                self._in_use.take(key, claim)
                self._created.take(key, claim)
                self.in_flight.seen(key, claim)
        self._changes_stamp = self._cluster.versions.now

    def inventory(self, rules: DeviceRules | None = None) -> Inventory:
        """Return the published devices; with `rules` None, by the rules of the previous call."""
        versions = self._cluster.versions
        by_rules = self._by_rules if rules is None else rules.device_taint_rules
        if self._inventory_stamp < versions.latest("ResourceSlice", KIND) or self._by_rules != by_rules:
            slices = self._cluster.of_kind("ResourceSlice").values()
            taints = self._cluster.of_kind(KIND).values() if by_rules else ()
            self._inventory = self._inventory.updated(self._tainted.of(slices, taints))
            self._inventory_stamp, self._by_rules = versions.now, by_rules
        return self._inventory

    def allocated(self) -> AllocatedState:
        """Return the devices that claims use, including allocations in flight."""
        self.catch_up()
        return self._in_use.state

    def extended_claim(self, pod: Pod) -> Object | None:
        """Return the claim that was created for the pod's extended resources, or None."""
        self.catch_up()
        return self._created.of(pod)

    def requests_of(self, claims: tuple[Claim, ...], most_steps: int, rules: DeviceRules) -> ClaimRequests:
        """Return the cached allocations for claims with these requests and at most `most_steps` steps."""
        mixed = self.inventory(rules).mixes_counters(apart=rules.pool_counters_apart)
        stamp = (self._cluster.versions.latest("ResourceSlice", "DeviceClass", KIND), rules)
        return self.known.of(claims, most_steps, mixed, stamp, self._in_use.pools)

    @property
    def stamp(self) -> Hashable:
        """A value that changes whenever this state changes."""
        versions = self._cluster.versions
        return (versions.latest("ResourceSlice", "ResourceClaim", "DeviceClass", KIND), self._in_use.pools.at)
