"""Prices of nodes per hour, by instance type or by resources, and the costs of a run.

    nodes:      {m5.large: 0.096}                 # by the label node.kubernetes.io/instance-type
    resources:  {cpu: 0.031, memory: 0.004}       # for a core, a GiB, one of any other resource

If a node's type has no price, the price is computed from its resources.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

import attrs
import numpy as np
import numpy.typing as npt

from kschedd.api.nodes import Node
from kschedd.cache.table import NodeTable
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import ConfigReader, ConfigValue, in_text_order
from kschedd.config.parsing.source import read_document
from kschedd.errors import KscheddError
from kschedd.pools.reading import Pools

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_UNITS: Final = {"cpu": 1000, "memory": 1 << 30, "ephemeral-storage": 1 << 30}
_MOST: Final = 1e9


class UnpricedNodeError(KscheddError):
    """A node has no price."""


@attrs.frozen
class Prices:
    """Prices per hour, in any currency."""

    nodes: Mapping[str, float]
    resources: Mapping[str, float]

    def of(self, node: Node) -> float:
        """Return the price of a node. Raises UnpricedNodeError."""
        kind = node.labels.get(INSTANCE_TYPE, "")
        if kind in self.nodes:
            return self.nodes[kind]
        priced = [name for name in self.resources if node.allocatable.get(name)]
        if not priced:
            raise UnpricedNodeError(
                f'prices: node {node.name} has no price; give one for its instance type "{kind}" or for its resources'
            )
        return sum(self.resources[name] * node.allocatable[name] / _UNITS.get(name, 1) for name in priced)


class NodePrices(Protocol):
    """Prices of nodes per hour."""

    def of(self, node: Node) -> float: ...


@attrs.frozen(eq=False)
class PoolPrices:
    """Prices of the nodes of pools. Other nodes have the prices `_others`; without these, they cost nothing."""

    _pools: Pools
    _others: Prices | None = None

    def of(self, node: Node) -> float:
        """Return the price of a node. Raises UnpricedNodeError."""
        price = self._pools.price_of(node)
        if price is None and self._others is not None:
            return self._others.of(node)
        return price or 0.0


class NodeCosts:
    """The costs of the nodes during a run: costs of all nodes, and of nodes with pods."""

    def __init__(self, table: NodeTable, prices: NodePrices) -> None:
        self._table = table
        self._prices = prices
        self._since_s = 0.0
        self._nodes_at = self._pods_at = -1
        self._by_row: npt.NDArray[np.float64] = np.zeros(0)
        self.hour = self.hour_used = 0.0  # price per hour at the last sample
        self.total = self.total_used = 0.0  # since the start

    def sample(self, elapsed_s: float) -> None:
        """Add the costs since the last sample, for unchanged nodes and pods.

        `elapsed_s` is the number of virtual seconds since the start. Raises UnpricedNodeError.
        """
        hours, self._since_s = (elapsed_s - self._since_s) / 3600, elapsed_s
        self.total += self.hour * hours
        self.total_used += self.hour_used * hours
        table, versions = self._table, self._table.versions
        if versions.nodes.at > self._nodes_at:
            self._by_row = np.zeros(table.capacity)
            for row, node in enumerate(table.nodes):
                if node is not None:
                    self._by_row[row] = self._prices.of(node)
            self.hour = float(self._by_row.sum())
        if versions.nodes.at > self._nodes_at or versions.pods.at > self._pods_at:
            self.hour_used = float(self._by_row[table.pod_count[: len(self._by_row)] > 0].sum())
        self._nodes_at, self._pods_at = versions.nodes.at, versions.pods.at


def read_prices(path: Path) -> Prices:
    """Read a file with prices. Raises ConfigErrors and KscheddError."""
    try:
        document = read_document(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as fault:
        raise KscheddError(f"{path}: cannot be read: {getattr(fault, 'strerror', None) or fault}") from fault
    reading = ConfigReader(str(path), document)
    found = prices_of(ConfigValue(document.value, "$", reading))
    if reading.faults:
        raise ConfigErrors(in_text_order(reading.faults))
    return found


def prices_of(place: ConfigValue) -> Prices:
    """Read prices; invalid entries are recorded as faults."""
    fields = place.fields("nodes", "resources")
    found: dict[str, dict[str, float]] = {"nodes": {}, "resources": {}}
    for name, prices in found.items() if fields is not None else ():
        given = fields.get(name) if fields is not None else None
        if given is not None and not isinstance(given.value, Mapping):
            given.wrong("must be a mapping to prices")
        elif given is not None:
            for key, value in given.value.items():
                at = given.at(str(key), value)
                prices[str(key)] = at.number() or 0.0
                if not 0 <= prices[str(key)] <= _MOST:
                    at.wrong("out of range", f"0 to {_MOST:g} in an hour")
    if not any(found.values()):
        place.wrong("no prices", "nodes: {TYPE: PRICE}, resources: {RESOURCE: PRICE}")
    return Prices(found["nodes"], found["resources"])
