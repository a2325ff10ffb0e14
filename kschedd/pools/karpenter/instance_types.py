"""Instance types: the shapes of nodes that can be launched, with the prices at which they are offered.

Reads `instance_types.json` of Karpenter's kwok provider. Faults name the line and the field.

Source: sigs.k8s.io/karpenter, kwok/cloudprovider/helpers.go and pkg/cloudprovider/types.go. Units: prices per hour; CPU
in millicores, other resources in whole units.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.quantity import QuantityError
from kschedd.api.resources import Resources, amounts
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import ConfigReader, ConfigValue, in_text_order
from kschedd.config.parsing.source import read_document
from kschedd.pools.karpenter.requirements import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    OPERATORS,
    WELL_KNOWN,
    ZONE,
    NodeRequirement,
    Requirements,
    combined,
    compatible,
)

_ARCHITECTURE: Final = "kubernetes.io/arch"
_SYSTEM: Final = "kubernetes.io/os"
_DEFAULT_PODS: Final = 110
_PREFIX: Final = "karpenter.kwok.sh/"
#: resources that each node keeps for itself
OVERHEAD: Final[Mapping[str, int]] = {"cpu": 100, "memory": 10 * 1024 * 1024}


Reservation = frozenset[tuple[str, ...]]


@attrs.frozen
class Offering:
    """A price at which an instance type is offered, usually for one zone and one capacity type."""

    requirements: Requirements
    price: float
    available: bool = True
    reserved: int | None = None  # number of reserved instances that are not in use

    @property
    def reservation(self) -> Reservation | None:
        """The labels that identify the reservation; None for an offering without reserved instances."""
        if self.reserved is None:
            return None
        return frozenset((key, *sorted(each.values)) for key, each in self.requirements.items() if key != CAPACITY_TYPE)

    def used_by(self, labels: Mapping[str, str]) -> bool:
        """Return whether a node with these labels uses an instance of this offering."""
        return all(key in labels and each.allows(labels[key]) for key, each in self.requirements.items())


@attrs.frozen
class InstanceType:
    name: str
    requirements: Requirements
    capacity: Resources
    offerings: Sequence[Offering]
    overhead: Mapping[str, int] = OVERHEAD

    @property
    def allocatable(self) -> Resources:
        return {name: number - self.overhead.get(name, 0) for name, number in self.capacity.items()}

    def price_in(self, zone: str, capacity_type: str) -> float:
        """Return the price of a running node with these labels; 0 if the type is not offered there."""
        there = {ZONE: zone, CAPACITY_TYPE: capacity_type}
        for offering in self.offerings:
            own = offering.requirements
            if all(own[key].allows(value) for key, value in there.items() if key in own):
                return 0.0 if math.isnan(offering.price) else offering.price
        return 0.0

    def offered_with(self, requirements: Requirements) -> list[Offering]:
        """Return the offerings that meet the requirements."""
        known = WELL_KNOWN | {key for offering in self.offerings for key in offering.requirements}
        return [each for each in self.offerings if compatible(requirements, each.requirements, known)]


def without_used(types: Iterable[InstanceType], nodes: Sequence[Mapping[str, str]]) -> list[InstanceType]:
    """Return the types without the reserved instances that nodes with these labels use."""
    return [attrs.evolve(each, offerings=[_without_used(one, nodes) for one in each.offerings]) for each in types]


def _without_used(offering: Offering, nodes: Sequence[Mapping[str, str]]) -> Offering:
    if offering.reserved is None:
        return offering
    left = max(0, offering.reserved - sum(map(offering.used_by, nodes)))
    return attrs.evolve(offering, reserved=left, available=offering.available and left > 0)


def read_instance_types(text: str, source: str) -> list[InstanceType]:
    """Return the instance types in the text of a file. Raises ConfigErrors with all faults."""
    document = read_document(text, source)
    return instance_types_of(document.value, ConfigReader(source, document), available=True)


def instance_types_of(raw: Any, reader: ConfigReader | None = None, *, available: bool = False) -> list[InstanceType]:
    """Return the instance types in a list. Raises ConfigErrors.

    With `available`, each offering is available, as the kwok provider reads them.
    """
    reader = reader or ConfigReader("instance types")
    found = [_instance_type(item, available) for item in ConfigValue(raw, "$", reader).items()]
    if reader.faults:
        raise ConfigErrors(in_text_order(reader.faults))
    return [each for each in found if each is not None]


def _instance_type(item: ConfigValue, available: bool) -> InstanceType | None:
    fields = item.fields("name", "architecture", "operatingSystems", "resources", "offerings", "requirements")
    if fields is None:
        return None
    name = fields.needed_text("name") or ""
    stated = fields.mapping("resources")
    capacity = {"pods": _DEFAULT_PODS, **(_amounts(stated) if stated else {})}
    read = [_offering(each, available) for each in fields.items("offerings")]
    offerings = [each for each in read if each is not None]
    own = [NodeRequirement.of(INSTANCE_TYPE, "In", (name,))]
    if architecture := fields.text("architecture"):
        own.append(NodeRequirement.of(_ARCHITECTURE, "In", (architecture,)))
    own.append(NodeRequirement.of(_SYSTEM, "In", [text for _, text in fields.texts("operatingSystems")]))
    for key in (ZONE, CAPACITY_TYPE):
        values = [each.requirements[key].values for each in offerings if each.available and key in each.requirements]
        own.append(NodeRequirement.of(key, "In", frozenset().union(*values)))
    own += derived_labels(name, capacity)
    own += [made for each in fields.items("requirements") if (made := requirement_of(each)) is not None]
    return InstanceType(name, combined(own), capacity, offerings)


def derived_labels(name: str, capacity: Mapping[str, int]) -> list[NodeRequirement]:
    """Return the labels that the kwok provider derives from the name and the resources."""
    cores = str(capacity.get("cpu", 0) // 1000)
    family, dot, size = name.partition(".")
    if not dot:
        family, dash, _ = name.partition("-")
        family, size = family if dash else name[:1], cores
    labels = {
        "instance-size": size,
        "instance-family": family,
        "instance-cpu": cores,
        "instance-memory": str(capacity.get("memory", 0) // (1024 * 1024)),
    }
    return [NodeRequirement.of(_PREFIX + label, "In", (value,)) for label, value in labels.items()]


def _offering(item: ConfigValue, available: bool) -> Offering | None:
    fields = item.fields("Price", "Available", "ReservationCapacity", "Requirements")
    if fields is None:
        return None
    own = [made for each in fields.items("Requirements") if (made := requirement_of(each)) is not None]
    return Offering(
        combined(own),
        fields.number("Price", 0.0),
        available or fields.boolean("Available", True),
        fields.maybe_integer("ReservationCapacity"),
    )


def _amounts(stated: ConfigValue) -> Resources:
    if stated.fields(any_other=True) is None:
        return {}
    try:
        return amounts(stated.value)
    except QuantityError as fault:
        stated.wrong(str(fault))
        return {}


def requirement_of(item: ConfigValue, *, flexible: bool = True) -> NodeRequirement | None:
    """Return a requirement, or None after a fault. With `flexible`, minValues is allowed."""
    fields = item.fields("key", "operator", "values", *(("minValues",) if flexible else ()))
    key = None if fields is None else fields.needed_text("key")
    if fields is None or key is None:
        return None
    operator = fields.choice("operator", "", OPERATORS)
    values = [text for _, text in fields.texts("values")]
    if operator in ("Gt", "Lt", "Gte", "Lte") and not (len(values) == 1 and _is_whole(values[0])):
        item.wrong(f"operator {operator} needs one whole number")
        return None
    if operator not in OPERATORS:
        item.wrong("operator is required", ", ".join(OPERATORS))
        return None
    return NodeRequirement.of(key, operator, values, fields.maybe_integer("minValues") if flexible else None)


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit()


def cheapest_first(types: Iterable[InstanceType], requirements: Requirements) -> list[InstanceType]:
    """Return the types by the price of their cheapest available compatible offering."""

    def price(each: InstanceType) -> float:
        return min((own.price for own in each.offered_with(requirements) if own.available), default=math.inf)

    return sorted(types, key=price)
