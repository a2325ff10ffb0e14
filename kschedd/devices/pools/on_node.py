"""Resource pools of a node: the slices of one generation that the node can use, taken from the inventory.

A pool is incomplete if a slice of its generation is missing. A pool is invalid if it has a duplicate device name, or
missing or duplicate counters. `Pool.slices` are the slices whose devices may be allocated: in 1.34 all slices; in 1.36,
none of an incomplete or invalid pool.

Pools are sorted by driver and name, as in 1.36.3; for 1.34, whose order is random, they are sorted by the names of
their slices. Pools with binding conditions come last.

Source: Kubernetes v1.34, v1.36 and v1.37,
dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go (GatherPools, buildPool).
Errors: InventoryError if the node selector of a slice cannot be parsed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import attrs

from kschedd.api.nodes import Node
from kschedd.devices.pools.inventory import CounterSets, Device, DeviceId, Inventory, PoolKey, Slice
from kschedd.devices.rules import DeviceRules


@attrs.frozen(eq=False)
class Pool:
    driver: str
    name: str
    slices: tuple[Slice, ...] = ()  # slices with devices that the node can use
    incomplete: bool = False
    invalid: str = ""  # reason why the pool is invalid, or ""
    others: tuple[Slice, ...] = ()  # slices of the same generation for other nodes
    counter_sets: CounterSets = attrs.field(factory=dict)

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"

    def devices(self) -> Iterator[Device]:
        return (device for one in self.slices for device in one.devices)


@attrs.frozen(eq=False)
class DeviceCandidates:
    """Some pools, with their devices in the order of the search.

    The pools include pools whose faults make the search fail.
    """

    pools: tuple[Pool, ...]
    in_order: list[Device | Pool] = attrs.field(factory=list)
    pool_of: dict[DeviceId, Pool] = attrs.field(factory=dict)
    spans: dict[PoolKey, range] = attrs.field(factory=dict)  # positions of each pool's devices in this order
    # by attribute and value: positions in this order
    _with_value: dict[str, dict[Any, list[int]]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, pools: Iterable[Pool], rules: DeviceRules) -> "DeviceCandidates":
        made = cls(tuple(pools))
        for pool in made.pools:
            start = len(made.in_order)
            if pool.invalid and not rules.invalid_pools_passed_over:
                made.in_order.append(pool)
            else:
                made.in_order.extend(pool.devices())
                made.pool_of.update((device.id, pool) for device in pool.devices())
            made.spans[pool.driver, pool.name] = range(start, len(made.in_order))
        return made

    def with_value(self, attribute: str, value: Any) -> Sequence[int]:
        """Return the positions of the devices with this value of the attribute."""
        by_value = self._with_value.get(attribute)
        if by_value is None:
            by_value = self._with_value[attribute] = {}
            for at, candidate in enumerate(self.in_order):
                found = None if isinstance(candidate, Pool) else candidate.attribute(attribute)
                if found is not None:
                    by_value.setdefault(found, []).append(at)
        return by_value.get(value, ())


def candidates_of(inventory: Inventory, node: Node, rules: DeviceRules) -> DeviceCandidates:
    """Return the pools that the node can use; the result is cached until the slices or the node change."""
    key = (rules, node.name)
    known: tuple[Node, DeviceCandidates] | None = inventory.cache.get(key)
    if known is None or known[0] is not node:
        known = inventory.cache[key] = (node, _shared(inventory, node, rules))
    return known[1]


def _shared(inventory: Inventory, node: Node, rules: DeviceRules) -> DeviceCandidates:
    """Return the pools that the node can use; nodes that can use all devices of the same slices share the result."""
    slices = [
        one
        for one in inventory.usable_on(node)
        if _is_read(one, rules) and not _for_every_node(one, rules) and one.reaches(node)
    ]
    if any(one.per_device for one in slices):
        return DeviceCandidates.of(_gathered(inventory, slices, rules), rules)
    key = (rules, *map(id, slices))
    known: DeviceCandidates | None = inventory.cache.get(key)
    if known is None:
        known = inventory.cache[key] = DeviceCandidates.of(_gathered(inventory, slices, rules), rules)
    return known


def _gathered(inventory: Inventory, slices: Sequence[Slice], rules: DeviceRules) -> list[Pool]:
    members: dict[PoolKey, list[Slice]] = {}
    for one in slices:
        members.setdefault((one.driver, one.pool), []).append(one)
    pools = []
    for key, with_devices in members.items():
        counters = [one for one in inventory.of_pool(key) if _for_every_node(one, rules)]
        pool = _pool(inventory, key, [*with_devices, *counters], rules)
        if pool is not None:
            pools.append(pool)
    if rules.partitionable_devices:
        pools += [pool for key, pool in _faulty_elsewhere(inventory, rules).items() if key not in members]
    if rules.incomplete_pools_passed_over:
        pools.sort(key=lambda pool: (pool.driver, pool.name))
    if rules.binding_conditions:
        pools.sort(key=_has_binding_conditions)
    return pools


def _is_read(one: Slice, rules: DeviceRules) -> bool:
    if rules.partitionable_devices:
        return True
    return not one.states_per_device and not (one.counter_sets and rules.counter_slices_passed_over)


def _for_every_node(one: Slice, rules: DeviceRules) -> bool:
    """Return whether the slice is read for every node, because it has counters, which belong to the whole pool."""
    return bool(one.counter_sets) and rules.partitionable_devices and not rules.counter_slices_have_nodes


def _faulty_elsewhere(inventory: Inventory, rules: DeviceRules) -> dict[PoolKey, Pool]:
    """Return the incomplete and invalid pools with counters, for a node that can use none of their devices.

    The counters of these pools are read for nodes that cannot use the pools as well, so a fault in them matters if all
    pools must be valid.
    """
    known: dict[PoolKey, Pool] | None = inventory.cache.get(rules)
    if known is None:
        known = inventory.cache[rules] = {}
        keys = {(one.driver, one.pool): None for one in inventory.slices() if _for_every_node(one, rules)}
        for key in keys:
            counters = [one for one in inventory.of_pool(key) if _for_every_node(one, rules)]
            pool = _pool(inventory, key, counters, rules)
            if pool is not None and (pool.incomplete or pool.invalid):
                known[key] = pool
    return known


def _pool(inventory: Inventory, key: PoolKey, slices: Iterable[Slice], rules: DeviceRules) -> Pool | None:
    """Return the pool of the newest generation in these slices; None if slices of other nodes have a newer one."""
    members = _newest(slices)
    state = _completeness(inventory, key, members)
    if state is None:
        return None
    if not state.complete and rules.incomplete_pools_passed_over:
        return Pool(*key, incomplete=True)
    pool = _built(key, members, state, partitionable=rules.partitionable_devices)
    return attrs.evolve(pool, slices=()) if pool.invalid and rules.invalid_pools_passed_over else pool


@attrs.frozen
class _Completeness:
    complete: bool
    everywhere: Sequence[Slice]  # all slices of the generation, including slices for other nodes


def _completeness(inventory: Inventory, key: PoolKey, members: Sequence[Slice]) -> _Completeness | None:
    """Return whether all slices of this generation exist; None if there is a newer generation."""
    generation, wanted = members[0].generation, members[0].slices_in_pool
    if len(members) == wanted:
        return _Completeness(True, members)
    published = inventory.of_pool(key)
    if any(one.generation > generation for one in published):
        return None
    everywhere = [one for one in published if one.generation == generation]
    return _Completeness(len(everywhere) == wanted, everywhere)


def _newest(slices: Iterable[Slice]) -> list[Slice]:
    """Return the slices of the newest generation among all slices of a pool."""
    slices = list(slices)
    newest = max(one.generation for one in slices)
    return [one for one in slices if one.generation == newest]


def _duplicate_device(slices: Iterable[Slice]) -> str:
    names: set[str] = set()
    for one in slices:
        for device in one.devices:
            if device.id.name in names:
                return f"duplicate device name {device.id.name}"
            names.add(device.id.name)
    return ""


def _built(key: PoolKey, members: Sequence[Slice], state: _Completeness, *, partitionable: bool) -> Pool:
    with_devices = tuple(one for one in members if not (one.counter_sets and partitionable))
    pool = Pool(*key, with_devices, not state.complete, _duplicate_device(with_devices))
    if pool.invalid or not partitionable:
        return pool
    there = set(map(id, members))
    others = tuple(one for one in state.everywhere if id(one) not in there)
    counter_sets: dict[str, Mapping[str, Fraction]] = {}
    for one in (*members, *others):
        for name, counters in one.counter_sets:
            if name in counter_sets:
                return attrs.evolve(pool, invalid=f"duplicate counter set name {name}")
            counter_sets[name] = counters
    others = tuple(one for one in others if not one.counter_sets)
    fault = _missing_counter(counter_sets, [*members, *others])
    return attrs.evolve(pool, invalid=fault, others=others, counter_sets=counter_sets)


def _missing_counter(counter_sets: CounterSets, slices: Iterable[Slice]) -> str:
    for one in slices:
        for device in one.devices:
            for of_set, name, _ in device.counters:
                if of_set not in counter_sets:
                    return f"counter set {of_set} not found"
                if name not in counter_sets[of_set]:
                    return f"counter {name} not found in counter set {of_set}"
    return ""


def _has_binding_conditions(pool: Pool) -> bool:
    return any(device.raw.get("bindingConditions") for device in pool.devices())
