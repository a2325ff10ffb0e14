"""Device inventory: ResourceSlices grouped into resource pools, per node.

A driver publishes a pool of devices as one or more slices of one generation. A node can use the slices that name it,
those for all nodes, and those whose node selector matches. A pool with a missing slice in its generation is
incomplete; one with a duplicate device name is invalid.

An `Inventory` is a read-only snapshot of the slices; `updated` makes the next one and reuses unchanged slices, so that
cached selector results (`Device.verdicts`) are kept.

Source: Kubernetes v1.34, dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go (the variant
that runs with default feature gates). Upstream gathers slices in no particular order; here it is that of their names.
Errors: InventoryError where a slice's node selector cannot be read.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, Raw
from kschedd.api.requirements import SelectorError
from kschedd.api.selectors import NodeSelector, parse_node_selector
from kschedd.errors import KscheddError

_ATTRIBUTE_TYPES: Final = ("int", "bool", "string", "version")


@attrs.frozen
class DeviceId:
    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"


@attrs.define(eq=False)
class InventoryError(KscheddError):
    why: str

    def __str__(self) -> str:
        return self.why


@attrs.frozen(eq=False)
class Device:
    id: DeviceId
    raw: Raw
    slice: "Slice"
    # Cached result of each evaluated selector: True, False or the failure. Owned by `kschedd.devices.selection`.
    verdicts: dict[str, Any] = attrs.field(factory=dict)
    view: list[Any] = attrs.field(factory=list)  # cached CEL input of this device: empty, or one element

    @property
    def usable(self) -> bool:
        """Whether the device can be allocated with v1.34's default feature gates."""
        return not self.raw.get("consumesCounters")

    def attribute(self, qualified: str) -> tuple[str, Any] | None:
        """(type, value) of the attribute with this qualified name; the driver domain is the default domain."""
        attributes: Mapping[str, Any] = self.raw.get("attributes") or {}
        found = attributes.get(qualified)
        if found is None:
            domain, slash, name = qualified.partition("/")
            if not slash or domain != self.id.driver:
                return None
            found = attributes.get(name)
        return None if found is None else typed_value(found)


def typed_value(attribute: Mapping[str, Any]) -> tuple[str, Any] | None:
    """(type, value) of an attribute; the type is int, bool, string or version."""
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
    node_name: str
    all_nodes: bool
    raw_selector: Raw | None
    devices: tuple[Device, ...] = ()
    _selector: NodeSelector | None = None

    @classmethod
    def read(cls, obj: Object) -> "Slice | None":
        """The slice of an API object; None if it depends on disabled feature gates."""
        spec = obj.spec
        if spec.get("perDeviceNodeSelection") is not None:
            return None
        pool = spec.get("pool") or {}
        made = cls(
            obj.name,
            spec.get("driver") or "",
            pool.get("name") or "",
            pool.get("generation") or 0,
            pool.get("resourceSliceCount") or 0,
            spec.get("nodeName") or "",
            bool(spec.get("allNodes")),
            spec.get("nodeSelector"),
        )
        if not (made.node_name or made.all_nodes or made.raw_selector is not None):
            return None
        made.devices = tuple(
            Device(DeviceId(made.driver, made.pool, raw.get("name") or ""), raw, made)
            for raw in spec.get("devices") or ()
        )
        return made

    def reaches(self, node: Node) -> bool:
        if self.node_name:
            return self.node_name == node.name
        if self.all_nodes:
            return True
        try:
            if self._selector is None:
                self._selector = parse_node_selector(self.raw_selector)
                if problems := self._selector.problems:
                    raise SelectorError(problems)
            return self._selector.matches(node.labels, node.name)
        except SelectorError as fault:
            self._selector = None
            raise InventoryError(
                f"failed to perform node selection for slice {self.name}: failed to parse node selector: {fault}"
            ) from fault


@attrs.frozen(eq=False)
class Pool:
    driver: str
    name: str
    slices: tuple[Slice, ...]  # those the node can use, of one generation
    incomplete: bool
    invalid: str  # why the pool is invalid; "" if it is valid

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


PoolKey = tuple[str, str]


@attrs.frozen(eq=False)
class Inventory:
    _read: dict[str, tuple[Object, Slice | None]] = attrs.field(factory=dict)  # by slice name
    _by_node: dict[str, list[Slice]] = attrs.field(factory=dict)
    _shared: list[Slice] = attrs.field(factory=list)  # slices without nodeName
    _generations: dict[PoolKey, dict[int, int]] = attrs.field(factory=dict)  # generation -> number of slices
    _pools: dict[str, tuple[Node, tuple[Pool, ...]]] = attrs.field(factory=dict)  # cache by node name

    def updated(self, slices: Iterable[Object]) -> "Inventory":
        """The inventory of these slices."""
        made = Inventory()
        for obj in sorted(slices, key=lambda one: one.name):
            known = self._read.get(obj.name)
            entry = known if known is not None and known[0] is obj else (obj, Slice.read(obj))
            made._read[obj.name] = entry
            found = entry[1]
            if found is None:
                continue
            counts = made._generations.setdefault((found.driver, found.pool), {})
            counts[found.generation] = counts.get(found.generation, 0) + 1
            if found.node_name:
                made._by_node.setdefault(found.node_name, []).append(found)
            else:
                made._shared.append(found)
        return made

    def pools(self, node: Node) -> tuple[Pool, ...]:
        """The pools the node can use, in the order of their first slices' names."""
        known = self._pools.get(node.name)
        if known is not None and known[0] is node:
            return known[1]
        reached = self._by_node.get(node.name, [])
        if self._shared:
            shared = [one for one in self._shared if one.reaches(node)]
            reached = sorted([*reached, *shared], key=lambda one: one.name) if shared else reached
        pools = tuple(self._gathered(reached))
        self._pools[node.name] = (node, pools)
        return pools

    def _gathered(self, slices: list[Slice]) -> Iterable[Pool]:
        gathered: dict[PoolKey, list[Slice]] = {}
        for one in slices:
            members = gathered.setdefault((one.driver, one.pool), [])
            if members and one.generation < members[0].generation:
                continue
            if members and one.generation > members[0].generation:
                members.clear()
            members.append(one)
        for key, members in gathered.items():
            generation, wanted = members[0].generation, members[0].slices_in_pool
            complete = len(members) == wanted
            if not complete:
                everywhere = self._generations[key]
                if max(everywhere) > generation:
                    continue  # obsolete: the driver is replacing this generation
                complete = everywhere[generation] == wanted
            yield Pool(*key, tuple(members), not complete, _fault(members))


def _fault(slices: list[Slice]) -> str:
    names: set[str] = set()
    for one in slices:
        for device in one.devices:
            if device.id.name in names:
                return f"duplicate device name {device.id.name}"
            names.add(device.id.name)
    return ""
