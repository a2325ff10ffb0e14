"""Estimated costs of the rules of custom resources, and the errors of rules whose estimate exceeds a limit.

The estimated cost of a rule is the cost of one evaluation, times the number of values for which the rule is evaluated.
Sizes without a limit in the schema are those of the largest request.

Source: Kubernetes v1.37, apiextensions-apiserver/pkg/apis/apiextensions/validation/{validation,cel_validation}.go,
pkg/apiserver/schema/cel/{compilation.go,model/schemas.go}, apiserver/pkg/cel/common/schemas.go.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from kschedd.api.schemas.fields import FieldError, forbidden
from kschedd.cel.estimates import SizedType
from kschedd.store.custom_resources.rule_types import escaped_name

Raw = Mapping[str, Any]
_MOST_OF_EXPRESSION: Final = 10_000_000
_MOST_OF_SCHEMA: Final = 100_000_000
_REQUEST: Final = 3 << 20  # octets of the largest request
_INTEGERS: Final = (1 << 64) - 1
_SHOWN: Final = 4  # most expensive rules in an error
_NAME: Final = 253  # characters of the longest name
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)
_TIMES: Final = {"duration": (32, 3), "date": (12, 12), "date-time": (32, 21)}  # largest size, least octets
_NUMBERS: Final = {"boolean": 4, "number": 1, "integer": 1}  # least octets
_STRING: Final[Raw] = {"type": "string"}


@attrs.frozen(eq=False)
class _Sized:
    type: SizedType
    octets: int  # of the shortest value, in JSON


def sized_type(schema: Raw, *, root: bool) -> tuple[SizedType, int]:
    """Return the type of the values of a schema with their sizes, and the largest number of values in a request."""
    found = _sized(schema, root=root)
    if found is None:
        return SizedType(), 0
    return found.type, _REQUEST // (found.octets + 1)


def _sized(schema: Any, *, root: bool = False) -> _Sized | None:
    """Return the type of a schema; None if expressions cannot use its values."""
    if not isinstance(schema, Mapping):
        return None
    longest = _limit(schema, "maxLength")
    if schema.get("x-kubernetes-int-or-string"):
        return _Sized(SizedType(_REQUEST - 2 if longest is None else longest * 4), 1)
    match schema.get("type"):
        case "array":
            item = _sized(schema.get("items"))
            return None if item is None else _several(item, _limit(schema, "maxItems"), item.octets + 1)
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            value = _sized(schema["additionalProperties"])
            return None if value is None else _several(value, _limit(schema, "maxProperties"), value.octets + 6, True)
        case "object":
            return _object(schema, root=root or bool(schema.get("x-kubernetes-embedded-resource")))
        case "string":
            return _text(schema, longest)
        case kind:
            return _Sized(SizedType(), _NUMBERS[kind]) if kind in _NUMBERS else None


def _limit(schema: Raw, field: str) -> int | None:
    value = schema.get(field)
    return max(value, 0) if isinstance(value, int) else None


def _several(inner: _Sized, most: int | None, octets: int, with_keys: bool = False) -> _Sized:
    size = (_REQUEST - 2) // octets if most is None else most
    return _Sized(SizedType(size, {}, inner.type, SizedType() if with_keys else None), 2)


def _object(schema: Raw, *, root: bool) -> _Sized:
    properties = dict(schema.get("properties") or {})
    if root:
        metadata = (properties.get("metadata") or {}).get("properties") or {}
        own = {name: _named(metadata.get(name), most) for name, most in (("name", _NAME), ("generateName", _NAME - 1))}
        properties |= {"kind": _STRING, "apiVersion": _STRING, "metadata": {"type": "object", "properties": own}}
    required, fields, octets = schema.get("required") or (), dict[str, SizedType](), 2
    for name, inner in properties.items():
        found = _sized(inner)
        if found is None:
            continue
        if escaped := escaped_name(name):
            fields[escaped] = found.type
        if name in required and inner.get("default") is None:
            octets += len(name.encode(errors="replace")) + found.octets + 4
    return _Sized(SizedType(0, fields), octets)


def _named(schema: Any, most: int) -> Raw:
    stated = _limit(schema, "maxLength") if isinstance(schema, Mapping) else None
    return {"type": "string", "maxLength": most if stated is None else min(stated, most)}


def _text(schema: Raw, longest: int | None) -> _Sized:
    form = str(schema.get("format") or "")
    if form in _TIMES:
        size, octets = _TIMES[form]
        return _Sized(SizedType(size), octets)
    if longest is not None:
        return _Sized(SizedType(longest if form == "byte" else longest * 4), 2)
    values = schema.get("enum")
    if form != "byte" and values:
        most = max((len(each.encode(errors="replace")) for each in values if isinstance(each, str)), default=0)
        return _Sized(SizedType(most), 2)
    return _Sized(SizedType(_REQUEST - 2), 2)


def inner_count(schema: Raw, count: int | None) -> int | None:
    """Return the largest number of inner values of a schema with this number of values; None without a limit."""
    if count is None:
        return None
    most: int | None = 1
    if schema.get("type") == "array":
        most = _limit(schema, "maxItems")
    elif schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        most = _limit(schema, "maxProperties")
    return None if most is None else min(count * most, _INTEGERS)


@attrs.define(eq=False)
class RuleCosts:
    """The estimated costs of all rules in one schema."""

    total: int = 0
    expensive: list[tuple[int, str]] = attrs.field(factory=list)

    def add(self, cost: int, path: str, what: str) -> Iterator[FieldError]:
        """Count an expression. Yield the error if its cost exceeds the limit of one expression."""
        if cost > _MOST_OF_EXPRESSION:
            yield forbidden(path, _excess(f"estimated {what} cost", cost, _MOST_OF_EXPRESSION))
        self.total = min(self.total + cost, _INTEGERS)
        if cost >= _MOST_OF_SCHEMA // 100:
            self.expensive.append((cost, path))

    def faults(self, path: str) -> Iterator[FieldError]:
        """Yield the errors if the costs of all expressions exceed the limit of a schema."""
        if self.total <= _MOST_OF_SCHEMA:
            return
        for _, where in sorted(self.expensive, key=lambda each: -each[0])[:_SHOWN]:
            yield forbidden(
                where, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            )
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _excess(what, self.total, _MOST_OF_SCHEMA))


def total_cost(cost: int, count: int) -> int:
    """Return the cost of an expression that is evaluated `count` times."""
    return min(cost * count, _INTEGERS)


def _excess(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} {_ADVICE}"
