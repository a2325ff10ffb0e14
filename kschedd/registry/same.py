"""Semantic equality of objects and their parts by schema, as upstream's equality.Semantic.

A nil pointer and a pointer to an empty value are different. In all other cases, an empty or zero value equals an absent
value. Quantities are compared by their amounts. Times are compared by their decoded text (`kschedd.api.schemas.codec`).
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.quantity import QuantityError, nanos
from kschedd.api.schemas.schema import QUANTITY, Fields, ListOf, Schema

FIELD_IS_IMMUTABLE: Final = "field is immutable"
_NOTHING: Final[Mapping[str, Any]] = {}


def same(one: Any, other: Any, schema: Schema) -> bool:
    """Return whether two values of a type are equal; a struct is compared as a value, not as a pointer."""
    if one == other:
        return isinstance(one, bool) == isinstance(other, bool)
    sort = type(schema)
    if sort is Fields:
        one, other = one or _NOTHING, other or _NOTHING
        return all(same_in(one, other, field, schema) for field in {*one, *other})
    if schema is QUANTITY:
        return bool(canonical_amount(one or "0") == canonical_amount(other or "0"))
    if not one or not other:
        return not one and not other
    if sort is str:
        return False
    if sort is ListOf:
        return len(one) == len(other) and all(same(*pair, schema.item) for pair in zip(one, other, strict=True))
    return one.keys() == other.keys() and all(same(one[key], other[key], schema.item) for key in one)


def same_in(one: Mapping[str, Any], other: Mapping[str, Any], field: str, fields: Fields) -> bool:
    """Return whether a field has the same value in both objects."""
    before, after, schema = one.get(field), other.get(field), fields.get(field)
    if schema is None:
        return bool(before == after)
    pointer = field in fields.pointers or (type(schema) is Fields and field not in fields.always)
    if pointer and (before is None or after is None):
        return before is after
    return same(before, after, schema)


def canonical_amount(quantity: Any) -> Any:
    """Return a value that is equal for equal quantities in different notations.

    An invalid quantity is returned unchanged.
    """
    try:
        return nanos(quantity)
    except QuantityError:
        return quantity


def at(raw: Mapping[str, Any], path: str) -> Any:
    found: Any = raw
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def without(spec: Mapping[str, Any] | None, fields: tuple[str, ...]) -> Mapping[str, Any]:
    return {field: value for field, value in (spec or {}).items() if field not in fields}
