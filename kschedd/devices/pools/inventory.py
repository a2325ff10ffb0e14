"""Device inventory: ResourceSlices as the allocator reads them, indexed by the nodes that can use them.

A driver publishes a pool of devices as one or more slices of the same generation. `kschedd.devices.pools.on_node`
assembles the pools of a node. A node can use slices that name the node, slices for all nodes, and slices whose node
selector matches. In a slice with `perDeviceNodeSelection`, these conditions apply to each device.

An `Inventory` is a read-only snapshot of the slices; `updated` creates the next one and reuses unchanged slices, so
that cached selector results (`Device.verdicts`) stay valid. Slices are sorted by name.

Source: Kubernetes v1.34 and v1.36, dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go
(NodeMatches). Upstream 1.34 reads slices in no particular order; kschedd sorts them by name, as 1.36 does.
Errors: InventoryError if a node selector cannot be parsed.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from heapq import merge
from typing import Any, Final

import attrs

from kschedd.api.cached import cached
from kschedd.api.nodes import Node
from kschedd.api.objects import Object, Raw
from kschedd.api.quantity import parse
from kschedd.api.selecting.requirements import SelectorError
from kschedd.api.selecting.selectors import NodeSelector, parse_node_selector
from kschedd.devices.pools.capacity import consumed_capacity, fits
from kschedd.errors import KscheddError

_ATTRIBUTE_TYPES: Final = ("int", "bool", "string", "version")

CounterSets = Mapping[str, Mapping[str, Fraction]]
"""Counters by the names of their set and their own."""


@attrs.frozen(cache_hash=True)
class DeviceId:
    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"


@attrs.define(eq=False)
class InventoryError(KscheddError):
    why: str


@attrs.define(eq=False)
class Reach:
    """The nodes that can use a slice or device: a named node, all nodes, or nodes that a selector matches."""

    node_name: str
    all_nodes: bool
    raw_selector: Raw | None
    _selector: NodeSelector | None = None

    @classmethod
    def read(cls, raw: Raw) -> "Reach":
        return cls(raw.get("nodeName") or "", bool(raw.get("allNodes")), raw.get("nodeSelector"))

    def __bool__(self) -> bool:
        """Return whether any nodes are selected."""
        return bool(self.node_name or self.all_nodes or self.raw_selector is not None)

    def includes(self, node: Node) -> bool:
        """Return whether the selection includes the node. Raises SelectorError."""
        if self.node_name:
            return self.node_name == node.name
        if self.all_nodes or self.raw_selector is None:
            return self.all_nodes
        if self._selector is None:
            selector = parse_node_selector(self.raw_selector)
            if problems := selector.problems:
                raise SelectorError(problems)
            self._selector = selector
        return self._selector.matches(node.labels, node.name)


@attrs.frozen(eq=False, slots=False)
class Device:
    id: DeviceId
    raw: Raw
    slice: "Slice"
    # Cached result of each selector: True, False or the failure. cached verdicts of CEL selectors, which
    # `kschedd.devices.selection` stores
    verdicts: dict[str, Any] = attrs.field(factory=dict)
    view: list[Any] = attrs.field(factory=list)  # cached CEL input for this device: at most one element

    @cached
    def reach(self) -> Reach:
        """Return the nodes that can use the device, if its slice selects nodes per device."""
        return Reach.read(self.raw) if self.slice.per_device else self.slice.reach

    @cached
    def shared(self) -> bool:
        """Return whether several claims may be allocated this device (`allowMultipleAllocations`)."""
        return bool(self.raw.get("allowMultipleAllocations"))

    @cached
    def counters(self) -> tuple[tuple[str, str, Fraction], ...]:
        """Return the counters that an allocation of the device consumes: (counter set, counter, amount)."""
        return tuple(
            (consumption.get("counterSet") or "", name, parse(counter.get("value", "0")))
            for consumption in self.raw.get("consumesCounters") or ()
            for name, counter in (consumption.get("counters") or {}).items()
        )

    @property
    def capacities(self) -> Mapping[str, Raw]:
        return self.raw.get("capacity") or {}

    @cached
    def consumed_by_default(self) -> Mapping[str, str] | None:
        """Return the capacities consumed by a request without capacities; None if such a request cannot be served."""
        return consumed_capacity({}, self.capacities)

    @cached
    def negative_by_default(self) -> str:
        """Return a capacity with a negative default consumption, or ""."""
        consumed = self.consumed_by_default or {}
        return min((name for name, amount in consumed.items() if parse(amount) < 0), default="")

    @cached
    def serves_by_default(self) -> bool:
        """Return whether a request without capacities can be served while the device has no allocated shares."""
        consumed = self.consumed_by_default
        return consumed is not None and fits(consumed, {}, self.capacities)

    def attribute(self, qualified: str) -> tuple[str, Any] | None:
        """Return type and value of the attribute with this qualified name; the driver is the default domain."""
        attributes: Mapping[str, Any] = self.raw.get("attributes") or {}
        found = attributes.get(qualified)
        if found is None:
            domain, slash, name = qualified.partition("/")
            if not slash or domain != self.id.driver:
                return None
            found = attributes.get(name)
        return None if found is None else typed_value(found)


def typed_value(attribute: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Return type and value of an attribute; the type is int, bool, string or version."""
    for of_type in _ATTRIBUTE_TYPES:
        value = attribute.get(of_type)
        if value is not None:
            return of_type, value
    return None


@attrs.define(eq=False)
class Slice:
    name: str
    driver: str
    pool: str
    generation: int
    slices_in_pool: int
    reach: Reach
    states_per_device: bool  # True if the field perDeviceNodeSelection is present, even if false
    per_device: bool
    counter_sets: tuple[tuple[str, Mapping[str, Fraction]], ...]
    devices: tuple[Device, ...] = ()

    @classmethod
    def read(cls, obj: Object) -> "Slice":
        spec = obj.spec
        pool = spec.get("pool") or {}
        per_device = spec.get("perDeviceNodeSelection")
        made = cls(
            obj.name,
            spec.get("driver") or "",
            pool.get("name") or "",
            pool.get("generation") or 0,
            pool.get("resourceSliceCount") or 0,
            Reach.read(spec),
            per_device is not None,
            bool(per_device),
            tuple(
                (
                    one.get("name") or "",
                    {name: parse(c.get("value", "0")) for name, c in (one.get("counters") or {}).items()},
                )
                for one in spec.get("sharedCounters") or ()
            ),
        )
        made.devices = tuple(
            Device(DeviceId(made.driver, made.pool, raw.get("name") or ""), raw, made)
            for raw in spec.get("devices") or ()
        )
        return made

    def reaches(self, node: Node) -> bool:
        """Return whether the node can use the slice, or at least one device if nodes are selected per device."""
        if self.reach or not self.per_device:
            try:
                return self.reach.includes(node)
            except SelectorError as fault:
                raise InventoryError(
                    f"failed to perform node selection for slice {self.name}: failed to parse node selector: {fault}"
                ) from fault
        return any(self.device_reaches(device, node) for device in self.devices)

    def device_reaches(self, device: Device, node: Node) -> bool:
        """Return whether the node can use this device of a slice that selects nodes per device."""
        try:
            return device.reach.includes(node)
        except SelectorError as fault:
            raise InventoryError(
                f"failed to perform node selection for device {device.id.name} in slice {self.name}: "
                f"failed to parse node selector: {fault}"
            ) from fault


def _name(one: Slice) -> str:
    return one.name


PoolKey = tuple[str, str]
"""Driver and name of a pool."""


@attrs.frozen(eq=False)
class Inventory:
    """All slices. `cache` contains values derived from this snapshot."""

    _read: dict[str, tuple[Object, Slice]] = attrs.field(factory=dict)  # by slice name
    _by_node: dict[str, list[Slice]] = attrs.field(factory=dict)
    _elsewhere: list[Slice] = attrs.field(factory=list)  # slices without nodeName
    _by_pool: dict[PoolKey, list[Slice]] = attrs.field(factory=dict)
    cache: dict[Any, Any] = attrs.field(factory=dict)

    def updated(self, slices: Iterable[Object]) -> "Inventory":
        """Return the inventory of these slices."""
        made = Inventory()
        for obj in sorted(slices, key=lambda one: one.name):
            known = self._read.get(obj.name)
            entry = known if known is not None and known[0] is obj else (obj, Slice.read(obj))
            made._read[obj.name] = entry
            found = entry[1]
            made._by_pool.setdefault((found.driver, found.pool), []).append(found)
            if found.reach.node_name:
                made._by_node.setdefault(found.reach.node_name, []).append(found)
            else:
                made._elsewhere.append(found)
        return made

    def slices(self) -> Iterable[Slice]:
        return (found for _, found in self._read.values())

    def usable_on(self, node: Node) -> list[Slice]:
        """Return the slices that the node may be able to use, sorted by name, without slices for other nodes."""
        local = self._by_node.get(node.name, [])
        return list(merge(local, self._elsewhere, key=_name)) if self._elsewhere else local

    def mixes_counters(self, *, apart: bool) -> bool:
        """Return whether upstream would store the counters of several pools under one name.

        With `apart`, this name includes the driver.
        """
        known: bool | None = self.cache.get(("mixes_counters", apart))
        if known is None:
            named = {(one.driver, one.pool, one.generation) for one in self.slices()}
            counted = {(one.driver if apart else "", one.pool) for one in self.slices() if one.counter_sets}
            names = [pool for driver, pool, _ in named if (driver if apart else "", pool) in counted]
            known = self.cache["mixes_counters", apart] = len(names) > len(counted)
        return known

    def of_pool(self, key: PoolKey) -> Sequence[Slice]:
        return self._by_pool.get(key, ())
