"""DRAManager: what the plugins of all profiles share of devices.

That is what is published, what claims hold, allocations in flight, and the DeviceClasses behind extended resources.
Reads the cluster state, never modifies it; each part is brought up to date when it is asked for.

Source: Kubernetes v1.34 and v1.36, plugins/dynamicresources/dra_manager.go.
"""

from collections.abc import Hashable

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.devices.allocation.known_allocations import AskedFor, KnownAllocations
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
        self._by_rules = False  # whether taints of DeviceTaintRules are among those of its devices
        self._tainted = TaintedSlices()

    def fork(self, cluster: SchedulerCache) -> "DRAManager":
        """The same allocations and reservations in flight over a fork of the cluster."""
        forked = DRAManager(cluster)
        forked.in_flight = self.in_flight.fork(cluster, forked._in_use)
        # What it takes in itself are the latest versions: what was seen before them is to be seen there, too.
        for key, claim in self._changes.since(self._changes_stamp) or ():
            forked.in_flight.seen(key, claim)
        return forked

    def catch_up(self) -> None:
        """Take in what became of claims since: called before an attempt looks at any."""
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
        """Return the devices that are published; None: by the rules asked by before."""
        versions = self._cluster.versions
        by_rules = self._by_rules if rules is None else rules.device_taint_rules
        if self._inventory_stamp < versions.latest("ResourceSlice", KIND) or self._by_rules != by_rules:
            slices = self._cluster.of_kind("ResourceSlice").values()
            taints = self._cluster.of_kind(KIND).values() if by_rules else ()
            self._inventory = self._inventory.updated(self._tainted.of(slices, taints))
            self._inventory_stamp, self._by_rules = versions.now, by_rules
        return self._inventory

    def allocated(self) -> AllocatedState:
        """What claims hold, allocations in flight included."""
        self.catch_up()
        return self._in_use.state

    def extended_claim(self, pod: Pod) -> Object | None:
        """The claim that was created for the pod's extended resources."""
        self.catch_up()
        return self._created.of(pod)

    def asked_for(self, claims: tuple[Claim, ...], most_steps: int, rules: DeviceRules) -> AskedFor:
        """Return what is known to be found, in at most `most_steps` steps, for what these claims ask for."""
        mixed = self.inventory(rules).mixes_counters(apart=rules.pool_counters_apart)
        stamp = (self._cluster.versions.latest("ResourceSlice", "DeviceClass", KIND), rules)
        return self.known.of(claims, most_steps, mixed, stamp, self._in_use.pools)

    @property
    def stamp(self) -> Hashable:
        """Changes whenever anything of this does."""
        versions = self._cluster.versions
        return (versions.latest("ResourceSlice", "ResourceClaim", "DeviceClass", KIND), self._in_use.pools.at)
