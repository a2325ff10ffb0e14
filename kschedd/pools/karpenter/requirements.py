"""Requirements of Karpenter: for each label, the set of values that a node may have.

A set is finite (`In`), or the complement of a finite set (`NotIn`, `Exists`), possibly with bounds for whole numbers.

Source: sigs.k8s.io/karpenter, pkg/scheduling/requirement.go and requirements.go, pkg/apis/v1/labels.go.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import RENAMED_LABELS

Raw = Mapping[str, Any]

NODE_POOL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ZONE: Final = "topology.kubernetes.io/zone"
#: labels that a pool need not define: a node has them in any case
WELL_KNOWN: Final = frozenset(
    (
        *(NODE_POOL, CAPACITY_TYPE, INSTANCE_TYPE, ZONE, "topology.kubernetes.io/region"),
        *("kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/windows-build"),
    )
)
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
_ABSENT_ALLOWED: Final = ("NotIn", "DoesNotExist")


@attrs.frozen
class NodeRequirement:
    """The allowed values of a label. With `complement`, `values` are the values that are not allowed."""

    key: str
    values: frozenset[str]
    complement: bool = False
    at_least: int | None = None
    at_most: int | None = None
    min_values: int | None = None

    @classmethod
    def of(
        cls, key: str, operator: str, values: Iterable[str] = (), min_values: int | None = None
    ) -> "NodeRequirement":
        """Return the requirement with an operator of NodePools; bounds must be whole numbers."""
        key, own = RENAMED_LABELS.get(key, key), frozenset(values)
        if operator in ("In", "NotIn"):
            return cls(key, own, operator == "NotIn", min_values=min_values)
        if operator in ("Exists", "DoesNotExist"):
            return cls(key, frozenset(), operator == "Exists", min_values=min_values)
        bound = int(next(iter(own)))
        low = {"Gt": bound + 1, "Gte": bound}.get(operator)
        high = {"Lt": bound - 1, "Lte": bound}.get(operator)
        return cls(key, frozenset(), True, low, high, min_values)

    @property
    def operator(self) -> str:
        if self.complement:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    def allows(self, value: str) -> bool:
        return (value in self.values) is not self.complement and self._in_bounds(value)

    def _in_bounds(self, value: str) -> bool:
        if self.at_least is None and self.at_most is None:
            return True
        try:
            number = int(value)
        except ValueError:
            return False
        return (self.at_least is None or number >= self.at_least) and (self.at_most is None or number <= self.at_most)

    def intersection(self, other: "NodeRequirement") -> "NodeRequirement":
        low = _strictest(self.at_least, other.at_least, max)
        high = _strictest(self.at_most, other.at_most, min)
        least = _strictest(self.min_values, other.min_values, max)
        if low is not None and high is not None and low > high:
            return NodeRequirement(self.key, frozenset(), min_values=least)
        if self.complement and other.complement:
            values = self.values | other.values
        elif self.complement:
            values = other.values - self.values
        else:
            values = self.values - other.values if other.complement else self.values & other.values
        bounded = attrs.evolve(self, values=frozenset(), complement=True, at_least=low, at_most=high)
        kept = frozenset(value for value in values if bounded._in_bounds(value))
        if self.complement and other.complement:
            return NodeRequirement(self.key, kept, True, low, high, least)
        return NodeRequirement(self.key, kept, min_values=least)

    def intersects(self, other: "NodeRequirement") -> bool:
        shared = self.intersection(other)
        return shared.complement or bool(shared.values)


def _strictest(one: int | None, other: int | None, choose: Any) -> int | None:
    stated = [each for each in (one, other) if each is not None]
    return choose(stated) if stated else None


Requirements = Mapping[str, NodeRequirement]


def combined(requirements: Iterable[NodeRequirement]) -> dict[str, NodeRequirement]:
    """Return the requirements by label; several requirements of one label are intersected."""
    found: dict[str, NodeRequirement] = {}
    for each in requirements:
        found[each.key] = each.intersection(found[each.key]) if each.key in found else each
    return found


def of_labels(labels: Mapping[str, str]) -> dict[str, NodeRequirement]:
    return combined(NodeRequirement.of(key, "In", (value,)) for key, value in labels.items())


def requirements_of(raws: Iterable[Raw]) -> dict[str, NodeRequirement]:
    """Return the requirements in a list of {key, operator, values, minValues}."""
    return combined(
        NodeRequirement.of(raw["key"], raw["operator"], raw.get("values") or (), raw.get("minValues")) for raw in raws
    )


def compatible(own: Requirements, other: Requirements, undefined: Container[str] = ()) -> bool:
    """Return whether nodes with the requirements `own` can meet `other`.

    A label that `own` does not define must be in `undefined`, or `other` must allow its absence.
    """
    for key, wanted in other.items():
        stated = own.get(key)
        if stated is None:
            if key not in undefined and wanted.operator not in _ABSENT_ALLOWED:
                return False
        elif not stated.intersects(wanted):
            if wanted.operator not in _ABSENT_ALLOWED or stated.operator not in _ABSENT_ALLOWED:
                return False
    return True


def intersect(one: Requirements, other: Requirements) -> bool:
    """Return whether nodes with the requirements `one` can meet `other` in the labels that `one` defines."""
    return compatible(one, {key: each for key, each in other.items() if key in one})


def alternatives(choices: Iterable[Sequence[Sequence[Raw]]]) -> list[Requirements]:
    """Return each combination of the choices, as requirements; a choice is a list of alternatives.

    Combinations that contradict themselves are dropped, unless all do. Without choices, the list is empty.
    """
    found: list[Requirements] = []
    for choice in choices:
        own = [requirements_of(each) for each in choice]
        if found:
            pairs = [(one, other) for one in found for other in own]
            kept = [(one, other) for one, other in pairs if intersect(one, other)] or pairs
            found = [combined([*one.values(), *other.values()]) for one, other in kept]
        else:
            found = [*own]
    return found
