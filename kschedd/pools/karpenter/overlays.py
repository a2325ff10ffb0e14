"""NodeOverlays: changed prices and added resources of instance types.

Overlays apply by descending weight, then by descending name. The first overlay that states a price or a resource
decides. An overlay that states what another overlay of equal weight states is in conflict, and has no effect.

Source: sigs.k8s.io/karpenter, pkg/controllers/nodeoverlay, pkg/cloudprovider/types.go (AdjustedPrice) and
pkg/apis/v1alpha1/nodeoverlay_validation.go.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import ConfigFields, ConfigReader, ConfigValue, in_text_order
from kschedd.pools.karpenter.instance_types import InstanceType, Offering, requirement_of
from kschedd.pools.karpenter.requirements import NODE_POOL, NodeRequirement, Requirements, combined, compatible

_RESTRICTED: Final = frozenset(("cpu", "memory", "ephemeral-storage", "pods"))
_WEIGHTS: Final = (1, 10_000)


@attrs.frozen
class NodeOverlay:
    """An overlay. `price` is a price, or a change that begins with a sign and may end with %; "": no change."""

    name: str
    requirements: Requirements
    price: str = ""
    capacity: Mapping[str, str] = attrs.field(factory=dict)
    weight: int = 0

    @property
    def restricted(self) -> frozenset[str]:
        """The resources in `capacity` that no overlay may state."""
        return _RESTRICTED & self.capacity.keys()


@attrs.frozen
class OverlaidTypes:
    """Instance types after all overlays. `capacity` maps each type to its added resources."""

    types: Sequence[InstanceType]
    capacity: Mapping[str, Mapping[str, str]]
    conflicting: Sequence[str]
    invalid: Sequence[str]


def overlay_of(raw: Any, reader: ConfigReader | None = None, path: str = "$") -> NodeOverlay:
    """Return the overlay in a manifest (karpenter.sh/v1alpha1), which is at `path` of its file.

    Raises ConfigErrors with all faults.
    """
    reader = reader or ConfigReader("NodeOverlay")
    found = _overlay(ConfigValue(raw, path, reader))
    if reader.faults or found is None:
        raise ConfigErrors(in_text_order(reader.faults))
    return found


def _overlay(value: ConfigValue) -> NodeOverlay | None:
    fields = value.fields("apiVersion", "kind", "metadata", "spec", "status")
    meta = None if fields is None else fields.mapping("metadata")
    named = None if meta is None else meta.fields("name", any_other=True)
    stated = None if fields is None else fields.mapping("spec")
    spec = None if stated is None else stated.fields("requirements", "price", "priceAdjustment", "capacity", "weight")
    if fields is None or named is None or spec is None:
        value.wrong("metadata.name and spec are required")
        return None
    own = [made for each in spec.items("requirements") if (made := requirement_of(each, flexible=False)) is not None]
    capacity = spec.mapping("capacity")
    is_map = capacity is not None and capacity.fields(any_other=True) is not None
    amounts = (
        {str(key): str(amount) for key, amount in capacity.value.items()} if capacity is not None and is_map else {}
    )
    name = named.needed_text("name") or ""
    return NodeOverlay(name, combined(own), _price(spec), amounts, spec.maybe_integer("weight", _WEIGHTS) or 0)


def _price(spec: ConfigFields) -> str:
    price, change = spec.text("price"), spec.text("priceAdjustment")
    if price and change:
        spec.missing("price", "must not be combined with priceAdjustment")
    for name, text in (("price", price), ("priceAdjustment", change)):
        signed = name == "priceAdjustment"
        if text and (_number(text.removesuffix("%") if signed else text) is None or (text[0] in "+-") is not signed):
            form = "a number with a sign, such as +10% or -0.5" if signed else "a number without a sign"
            spec.missing(name, f"must be {form}, not {text!r}")
    return price or change


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def adjusted_price(price: float, change: str) -> float:
    """Return the price after an overlay's price or change of price."""
    if not change:
        return price
    if change[0] not in "+-":
        return float(change)
    if change.endswith("%"):
        return max(0.0, price * (1 + float(change[:-1]) / 100))
    return max(0.0, price + float(change))


@attrs.define(eq=False)
class _Changes:
    """The changes of one instance type: prices by the place of the offering, and added resources."""

    prices: dict[int, str] = attrs.field(factory=dict)
    price_weights: dict[int, int] = attrs.field(factory=dict)
    capacity: dict[str, str] = attrs.field(factory=dict)
    last_resources: frozenset[str] = frozenset()  # of the last overlay with resources, and its weight
    last_weight: int = 0

    def conflicts(self, overlay: NodeOverlay, places: Iterable[int]) -> bool:
        if overlay.price and any(self.price_weights.get(place) == overlay.weight for place in places):
            return True
        same = bool(overlay.capacity) and self.last_weight == overlay.weight
        return same and not self.last_resources.isdisjoint(overlay.capacity)

    def add(self, overlay: NodeOverlay, places: Iterable[int]) -> None:
        if overlay.price:
            for place in places:
                self.prices.setdefault(place, overlay.price)
                self.price_weights[place] = overlay.weight
        if overlay.capacity:
            self.capacity = {**overlay.capacity, **self.capacity}
            self.last_resources, self.last_weight = frozenset(overlay.capacity), overlay.weight


def apply_overlays(
    types: Sequence[InstanceType], overlays: Iterable[NodeOverlay], pool: str, labels: Mapping[str, str]
) -> OverlaidTypes:
    """Return the instance types of a pool after its overlays. `labels` are those of the pool's template."""
    ordered = sorted(sorted(overlays, key=lambda each: each.name, reverse=True), key=lambda each: -each.weight)
    changes = {each.name: _Changes() for each in types}
    conflicting, invalid = [], []
    of_pool = [NodeRequirement.of(NODE_POOL, "In", (pool,))]
    of_pool += [NodeRequirement.of(key, "In", (value,)) for key, value in labels.items()]
    for overlay in ordered:
        if overlay.restricted:
            invalid.append(overlay.name)
            continue
        selected = {each.name: _places(each, overlay, of_pool) for each in types}
        if any(places and changes[name].conflicts(overlay, places) for name, places in selected.items()):
            conflicting.append(overlay.name)
            continue
        for name, places in selected.items():
            if places:
                changes[name].add(overlay, places)
    return OverlaidTypes(
        [_changed(each, changes[each.name]) for each in types],
        {name: change.capacity for name, change in changes.items() if change.capacity},
        conflicting,
        invalid,
    )


def _places(each: InstanceType, overlay: NodeOverlay, of_pool: Iterable[NodeRequirement]) -> list[int]:
    """Return the places of the offerings that the overlay selects."""
    if not compatible(combined([*of_pool, *each.requirements.values()]), overlay.requirements):
        return []
    selected = {id(offering) for offering in each.offered_with(overlay.requirements)}
    return [place for place, offering in enumerate(each.offerings) if id(offering) in selected]


def _changed(each: InstanceType, changes: _Changes) -> InstanceType:
    offerings: list[Offering] = [
        attrs.evolve(offering, price=adjusted_price(offering.price, changes.prices.get(place, "")))
        for place, offering in enumerate(each.offerings)
    ]
    return attrs.evolve(each, offerings=offerings)
