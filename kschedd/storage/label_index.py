"""An index of items by a node label that they require; it finds the candidates for a node without visiting all items.

A local volume requires one host and a CSIStorageCapacity one zone, so a node can use only a few items of a long list.
An item is indexed by one of the labels that it requires. `candidates` returns the items whose label the node has, and
the items that require no label. Candidates must still be compared in full. Insertion order is kept.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

import attrs

from kschedd.api.selecting.selectors import IN, LabelSelector, NodeSelector, Requirement

T = TypeVar("T")


@attrs.frozen(eq=False)
class LabelIndex(Generic[T]):
    _anywhere: list[tuple[int, T]]
    _filed: dict[str, dict[str, list[tuple[int, T]]]]  # for each label key and value: the items with their ranks

    @classmethod
    def of(cls, items: Iterable[tuple[T, Requirement | None]]) -> "LabelIndex[T]":
        """Index items, each with an In requirement that every node which can use the item meets, or with None."""
        made = cls([], {})
        for rank, (item, demand) in enumerate(items):
            if demand is None:
                made._anywhere.append((rank, item))
                continue
            values = made._filed.setdefault(demand.key, {})
            for label in dict.fromkeys(demand.values):
                values.setdefault(label, []).append((rank, item))
        return made

    def candidates(self, labels: Mapping[str, str]) -> list[T]:
        found = list(self._anywhere)
        for key, values in self._filed.items():
            label = labels.get(key)
            if label is not None:
                found += values.get(label, ())
        found.sort(key=lambda ranked: ranked[0])
        return [item for _, item in found]


def required_node_label(selector: NodeSelector | None) -> Requirement | None:
    """Return the In requirement with the fewest values that every matching node meets; None without one."""
    if selector is None or len(selector.terms) != 1 or selector.terms[0].problems:
        return None
    return _narrowest(selector.terms[0].match_expressions)


def required_label(selector: LabelSelector) -> Requirement | None:
    return _narrowest(selector.requirements)


def _narrowest(requirements: Iterable[Requirement]) -> Requirement | None:
    exact = [requirement for requirement in requirements if requirement.operator == IN]
    return min(exact, key=lambda requirement: len(requirement.values), default=None)
