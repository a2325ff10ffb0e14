"""DRAManager: what the plugins of all profiles share of devices.

That is what is published, what claims hold, allocations in flight, and the DeviceClasses behind extended resources.
Reads the cluster state, never modifies it; each part is brought up to date when it is asked for.

Source: Kubernetes v1.34 and v1.36, plugins/dynamicresources/dra_manager.go.
"""

from collections.abc import Hashable

from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.devices.allocated import AllocatedState, InUse
from kschedd.devices.extended_resources import DeviceClassResolver
from kschedd.devices.in_flight import ClaimsInFlight
from kschedd.devices.inventory import Inventory
from kschedd.devices.known_allocations import KnownAllocations


class DRAManager:
    def __init__(self, cluster: SchedulerCache) -> None:
        self._cluster = cluster
        self.in_flight = ClaimsInFlight(cluster)
        self.resolver = DeviceClassResolver(cluster)
        self.known = KnownAllocations()
        self._in_use = InUse()
        self._inventory = Inventory()
        self._inventory_stamp = -1

    def fork(self, cluster: SchedulerCache) -> "DRAManager":
        """The same allocations and reservations in flight over a fork of the cluster."""
        forked = DRAManager(cluster)
        forked.in_flight = self.in_flight.fork(cluster)
        return forked

    def inventory(self) -> Inventory:
        versions = self._cluster.versions
        if self._inventory_stamp < versions.latest("ResourceSlice"):
            self._inventory = self._inventory.updated(self._cluster.of_kind("ResourceSlice").values())
            self._inventory_stamp = versions.now
        return self._inventory

    def allocated(self) -> AllocatedState:
        """What claims hold, allocations in flight included."""
        self.in_flight.forget_seen()
        claims, versions = self._cluster.of_kind("ResourceClaim"), self._cluster.versions
        return self._in_use.state(claims, versions, self.in_flight.held() if self.in_flight else None)

    @property
    def stamp(self) -> Hashable:
        """Changes whenever anything of this does."""
        versions = self._cluster.versions
        return (versions.latest("ResourceSlice", "ResourceClaim", "DeviceClass"), self.in_flight.changes)
