"""A pod's spec without its amounts: numbers on which no other field of the spec depends.

If every pod has its own spec, most specs still differ only in the amounts of cpu and memory of their containers, and in
the weights of their preferred pod affinity. Defaulting, validation and admission of all other fields do not depend on
valid amounts and weights (unless a LimitRange applies). The other fields are therefore admitted once, with small
numbers in place of the amounts. The amounts of each spec are then inserted in stored form.

A spec qualifies if its containers have only requests and limits of cpu and memory, all positive and in whole millicores
and bytes, and the pod has no pod-level resources. The QoS class and the validity depend only on which requests and
limits are present, and on whether a request is below its limit. In the spec without amounts, the numbers 1 and 2
represent this information.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import attrs

from kschedd.api.quantity import LONGEST, QuantityError, nanos
from kschedd.registry.pods.defaults import stored_quantity

Raw = Mapping[str, Any]
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WITH_WEIGHTS: Final = ("podAffinity", "podAntiAffinity")
_PARTS: Final = ("requests", "limits")
_SMALLEST: Final = {"cpu": 10**6, "memory": 10**9}  # in billionths of a unit
# other fields that may contain amounts
_OTHERS: Final = ("initContainers", "ephemeralContainers", "resources", "overhead")


@attrs.frozen(eq=False)
class SpecWithoutAmounts:
    """A spec without amounts, and its original amounts.

    `amounts` has one entry per container: its "requests" and "limits" as stored, or None. `weights` contains the
    weights for each kind of affinity.
    """

    spec: Raw
    amounts: Sequence[Raw | None]
    weights: Mapping[str, Sequence[int]]

    def fill(self, admitted: Raw) -> dict[str, Any]:
        """Return the admitted original spec, from the admitted spec without amounts."""
        spec = dict(admitted)
        spec["containers"] = [
            container if stated is None else {**container, "resources": _filled(container["resources"], stated)}
            for container, stated in zip(admitted["containers"], self.amounts, strict=True)
        ]
        if self.weights:
            affinity = spec["affinity"] = dict(admitted["affinity"])
            for which, weights in self.weights.items():
                affinity[which] = {**affinity[which], _PREFERRED: _weighted(affinity[which][_PREFERRED], weights)}
        return spec


def without_amounts(spec: Raw) -> SpecWithoutAmounts | None:
    """Split a spec.

    Return None if the spec has no amounts, or if the amounts affect other fields.
    """
    containers = spec.get("containers")
    if type(containers) is not list or any([spec.get(field) is not None for field in _OTHERS]):
        return None
    amounts: list[Raw | None] = []
    plain: list[Any] = []
    for container in containers:
        if type(container) is not dict:
            return None
        stated: Raw | None = None
        if "resources" in container:
            stated = _stated(container["resources"])
            if stated is None:
                return None
            container = {**container, "resources": _plain(stated)}
        amounts.append(stated)
        plain.append(container)
    if not any(amounts):
        return None
    plain_spec, weights = {**spec, "containers": plain}, {}
    affinity = spec.get("affinity")
    if type(affinity) is dict:
        for which in _WITH_WEIGHTS:
            if found := _weights(affinity.get(which)):
                weights[which] = found
                part = affinity[which]
                plain_spec["affinity"] = {
                    **plain_spec["affinity"],
                    which: {**part, _PREFERRED: _weighted(part[_PREFERRED], [1] * len(found))},
                }
    return SpecWithoutAmounts(plain_spec, amounts, weights)


def _stated(resources: Any) -> Raw | None:
    """Return requests and limits as stored; None if the spec has no form without amounts because of these resources."""
    if type(resources) is not dict or not resources:
        return None
    stated: dict[str, dict[str, str]] = {}
    for part, quantities in resources.items():
        if part not in _PARTS or type(quantities) is not dict or not quantities:
            return None
        stored = stated[part] = {}
        for name, quantity in quantities.items():
            if type(name) is not str or type(quantity) is not str or (text := _stored(name, quantity)) is None:
                return None
            stored[name] = text
    limits = stated.get("limits") or {}
    for name, text in (stated.get("requests") or {}).items():
        if name in limits and nanos(text) > nanos(limits[name]):
            return None
    return stated


def _plain(stated: Raw) -> Raw:
    """Return the small numbers that replace these amounts."""
    requests = stated.get("requests") or {}
    return {
        part: {
            name: "2" if part == "limits" and _is_below(requests.get(name), text) else "1" for name, text in of.items()
        }
        for part, of in stated.items()
    }


def _is_below(request: str | None, limit: str) -> bool:
    return request is not None and request != limit and nanos(request) < nanos(limit)


def _filled(admitted: Raw, stated: Raw) -> dict[str, Any]:
    """Return admitted resources with these amounts; an omitted request equals the limit."""
    found = dict(admitted)
    for part in _PARTS:
        if part in admitted:
            amounts = {**(stated.get("limits") or {}), **(stated.get(part) or {})}
            found[part] = {name: amounts[name] for name in admitted[part]}
    return found


@lru_cache(1 << 13)
def _stored(name: str, quantity: str) -> str | None:
    if name not in _SMALLEST or len(quantity) > LONGEST:
        return None
    try:
        amount = nanos(quantity)
    except QuantityError:
        return None
    return stored_quantity(quantity) if amount > 0 and not amount % _SMALLEST[name] else None


def _weights(part: Any) -> list[int]:
    """Return the weights of a pod's affinity or anti-affinity; empty if any weight is invalid."""
    terms = part.get(_PREFERRED) if type(part) is dict else None
    if type(terms) is not list:
        return []
    weights: list[int] = []
    for term in terms:
        weight = term.get("weight") if type(term) is dict else None
        if type(weight) is not int or not 1 <= weight <= 100:
            return []
        weights.append(weight)
    return weights


def _weighted(terms: Sequence[Raw], weights: Sequence[int]) -> list[Raw]:
    return [{**term, "weight": weight} for term, weight in zip(terms, weights, strict=True)]
