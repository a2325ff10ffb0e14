"""The nodes of the examined cluster, by name and by label, with arrays of their resources."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.cache.table import Ints, NodeTable, Rows


@attrs.define(eq=False, slots=False)
class ClusterNodes:
    """The nodes of a node table, which must not change while this object is used.

    All cases of a pod share the values computed here.
    """

    table: NodeTable
    _rows: dict[tuple[str, ...], Rows] = attrs.field(factory=dict, init=False)
    _values: dict[str, Counter[str]] = attrs.field(factory=dict, init=False)
    _offering: dict[str, frozenset[str]] = attrs.field(factory=dict, init=False)

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.table.nodes if node is not None}

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(self.by_name)

    @cached_property
    def labels(self) -> Mapping[str, Counter[str]]:
        """For each label key of the nodes, the number of nodes with each value."""
        return values_by_key(node.labels for node in self.by_name.values())

    def values(self, key: str) -> Counter[str]:
        """Return the number of nodes with each value of a label key."""
        if "labels" in vars(self):
            return self.labels.get(key, Counter())
        found = self._values.get(key)
        if found is None:
            having = (node.labels[key] for node in self.by_name.values() if key in node.labels)
            found = self._values[key] = Counter(having)
        return found

    def rows(self, names: Sequence[str]) -> Rows:
        """Return the rows of these nodes, in the order of `names`."""
        place = tuple(names)
        found = self._rows.get(place)
        if found is None:
            number = map(self.table.row_of.__getitem__, place)
            found = self._rows[place] = np.fromiter(number, dtype=np.int64, count=len(place))
        return found

    def there(self, names: Sequence[str], resource: str) -> Ints:
        """Return the allocatable amount of a resource on each of these nodes."""
        number = self.table.resources.get(resource)
        if number is None and resource != "pods":
            return np.array([self.by_name[name].allocatable.get(resource, 0) for name in names], dtype=np.int64)
        column: Ints = self.table.allowed_pods if number is None else self.table.allocatable[number]
        found: Ints = column.take(self.rows(names))
        return found

    def frees(self, names: Sequence[str], resource: str) -> Ints:
        """Return the free amount of a resource on each of these nodes, in millicores or whole units."""
        number = self.table.resources.get(resource)
        there = self.there(names, resource)
        return there if number is None else there - self.table.requested[number].take(self.rows(names))

    def offering(self, resource: str) -> frozenset[str]:
        """Return the nodes whose allocatable amount of a resource is not 0."""
        found = self._offering.get(resource)
        if found is None:
            nodes = self.by_name.items()
            having = [name for name, node in nodes if node.allocatable.get(resource, 0) > 0]
            found = self._offering[resource] = frozenset(having)
        return found

    def offers(self, resource: str) -> bool:
        """Return whether any node has a nonzero allocatable amount of the resource."""
        number = self.table.resources.get(resource)
        return bool(self.offering(resource) if number is None else (self.table.allocatable[number] > 0).any())

    @cached_property
    def resources(self) -> frozenset[str]:
        """The resources that at least one node offers."""
        stated = set().union(*(node.allocatable for node in self.by_name.values()))
        return frozenset(
            name for name in stated if any(node.allocatable.get(name, 0) > 0 for node in self.by_name.values())
        )


def values_by_key(labels: Iterable[Mapping[str, str]]) -> dict[str, Counter[str]]:
    """Return, for each key, the number of maps that have each value."""
    found: dict[str, Counter[str]] = {}
    for (key, value), count in Counter(chain.from_iterable(each.items() for each in labels)).items():
        if key not in found:
            found[key] = Counter()
        found[key][value] = count
    return found
