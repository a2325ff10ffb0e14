"""Things that only nodes with a certain label can use, found by a node's labels without looking at all of them.

A local volume names one host, a storage capacity one zone: most of a long list is out of the question for a node. An
item is filed under one label it demands; `near` gives those whose label the node has, and those that demand none.
They still have to be matched in full. Order is kept: what was given first comes first.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

import attrs

from kschedd.api.selectors import IN, LabelSelector, NodeSelector, Requirement

T = TypeVar("T")


@attrs.frozen(eq=False)
class ByLabel(Generic[T]):
    _anywhere: list[tuple[int, T]]
    _filed: dict[str, dict[str, list[tuple[int, T]]]]  # label key -> value -> (rank, item)

    @classmethod
    def of(cls, items: Iterable[tuple[T, Requirement | None]]) -> "ByLabel[T]":
        """Each item with a requirement that a node must meet to be able to use it, if it has one of the form In."""
        made = cls([], {})
        for rank, (item, demand) in enumerate(items):
            if demand is None:
                made._anywhere.append((rank, item))
                continue
            values = made._filed.setdefault(demand.key, {})
            for label in dict.fromkeys(demand.values):
                values.setdefault(label, []).append((rank, item))
        return made

    def near(self, labels: Mapping[str, str]) -> list[T]:
        found = list(self._anywhere)
        for key, values in self._filed.items():
            label = labels.get(key)
            if label is not None:
                found += values.get(label, ())
        found.sort(key=lambda ranked: ranked[0])
        return [item for _, item in found]


def demand_of_nodes(selector: NodeSelector | None) -> Requirement | None:
    """The narrowest label a node selector demands in any case."""
    if selector is None or len(selector.terms) != 1 or selector.terms[0].problems:
        return None
    return _narrowest(selector.terms[0].match_expressions)


def demand_of_labels(selector: LabelSelector) -> Requirement | None:
    return _narrowest(selector.requirements)


def _narrowest(requirements: Iterable[Requirement]) -> Requirement | None:
    exact = [requirement for requirement in requirements if requirement.operator == IN]
    return min(exact, key=lambda requirement: len(requirement.values), default=None)
