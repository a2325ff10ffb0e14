"""Prices of nodes per hour, by instance type or by resources.

    nodes:      {m5.large: 0.096}                 # by the label node.kubernetes.io/instance-type
    resources:  {cpu: 0.031, memory: 0.004}       # for a core, a GiB, one of any other resource

If the type of a node has no price, the price follows from the node's resources.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.config.parsing.reading import ConfigValue
from kschedd.errors import KscheddError

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
