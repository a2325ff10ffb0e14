"""Functions on lists and sets.

Source: apiserver/pkg/cel/library/lists.go; cel-go ext/{lists,sets}.go and their costs.
Errors: CelFailure.
"""

import math
from itertools import pairwise
from typing import Any

from kschedd.cel.errors import CelFailure
from kschedd.cel.functions.overloads import define
from kschedd.cel.syntax import Uint
from kschedd.cel.values import Duration, equal, in_int_range, in_uint_range, kind, ordering, traversal


def _ordered(values: list[Any], function: str) -> list[Any]:
    if len({kind(value) for value in values}) > 1 or not all(map(ordering, values)):
        raise CelFailure(f"no such overload: {function}(list)")
    return values


def _least(values: list[Any]) -> Any:
    if not values:
        raise CelFailure("min called on empty list")
    return min(_ordered(values, "min"))


def _most(values: list[Any]) -> Any:
    if not values:
        raise CelFailure("max called on empty list")
    return max(_ordered(values, "max"))


def _sum(values: list[Any]) -> Any:
    _ordered(values, "sum")
    if not values:
        return 0
    if isinstance(values[0], float):
        return math.fsum(values)
    if isinstance(values[0], Duration):
        return Duration(in_int_range(sum(value.nanos for value in values)))
    if isinstance(values[0], bool) or not isinstance(values[0], int):
        raise CelFailure("no such overload: sum(list)")
    total = sum(int(value) for value in values)
    return in_uint_range(total) if isinstance(values[0], Uint) else in_int_range(total)


def _is_sorted(values: list[Any]) -> bool:
    _ordered(values, "isSorted")
    return all(bool(one <= next_one) for one, next_one in pairwise(values))


def _place_of(values: list[Any], wanted: Any) -> int:
    return next((place for place, value in enumerate(values) if equal(value, wanted)), -1)


def _last_place_of(values: list[Any], wanted: Any) -> int:
    from_the_end = _place_of(values[::-1], wanted)
    return -1 if from_the_end < 0 else len(values) - 1 - from_the_end


_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
define(".indexOf", "list(A) A", "int", _place_of, traversal)
define(".lastIndexOf", "list(A) A", "int", _last_place_of, traversal)
for _of in _COMPARABLE:
    define(".isSorted", f"list({_of})", "bool", _is_sorted, traversal)
    define(".min", f"list({_of})", _of, _least, traversal)
    define(".max", f"list({_of})", _of, _most, traversal)
for _of in ("int", "uint", "double", "duration"):
    define(".sum", f"list({_of})", _of, _sum, traversal)


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    called = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise CelFailure(f"{called}negative indexes not supported")
    if start > end:
        raise CelFailure(f"{called}start index must be less than or equal to end index")
    if len(values) < end:
        raise CelFailure(f"{called}list is length {len(values)}")
    return values[start:end]


def _flat(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelFailure("level must be non-negative")
    found: list[Any] = []
    for each in values:
        if isinstance(each, list) and depth:
            found += _flat(each, depth - 1)
        else:
            found.append(each)
    return found


def _sorted_by(values: list[Any], keys: list[Any]) -> list[Any]:
    if len({kind(key) for key in keys}) > 1:
        raise CelFailure("list elements must have the same type")
    if keys and not ordering(keys[0]):
        raise CelFailure("list elements must be comparable")
    return [values[place] for place in sorted(range(len(values)), key=lambda place: keys[place])]


def _distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for each in values:
        if not any(equal(each, other) for other in found):
            found.append(each)
    return found


_MOST_IN_RANGE = 1_000_000


def _range(count: int) -> list[int]:
    if count < 0:
        raise CelFailure(f"lists.range: size must be non-negative, got {count}")
    if count > _MOST_IN_RANGE:
        raise CelFailure(f"lists.range: size {count} exceeds maximum allowed ({_MOST_IN_RANGE})")
    return list(range(count))


def _items(result: list[Any]) -> int:
    return 11 + len(result)


def _flat_cost(values: list[Any], depth: int = 1) -> int:
    return 11 + len(values) * max(depth, 0)


def _compared_cost(values: list[Any], keys: list[Any] | None = None) -> int:
    compared = values if keys is None else keys
    factor = 2.1 if compared and isinstance(compared[0], str | bytes) else 2.0
    return 11 + int(len(compared) ** 2 * factor)


define(".slice", "list(A) int int", "list(A)", _slice, library="lists", cost_after=_items)
define(".flatten", "list(list(A))", "list(A)", _flat, _flat_cost, library="lists")
define(".flatten", "list(dyn) int", "list(dyn)", _flat, _flat_cost, library="lists")
for _of in _COMPARABLE:
    define(".sort", f"list({_of})", f"list({_of})", lambda a: _sorted_by(a, a), _compared_cost, library="lists")
    define(".@sortByAssociatedKeys", f"list(A) list({_of})", "list(A)", _sorted_by, _compared_cost, library="lists")
define("lists.range", "int", "list(int)", _range, library="lists", cost_after=_items)
define(".reverse", "list(A)", "list(A)", lambda a: a[::-1], library="lists", cost_after=_items)
define(".distinct", "list(A)", "list(A)", _distinct, _compared_cost, library="lists")

# -- sets -----------------------------------------------------------------------------------------------------


def _contains(values: list[Any], others: list[Any]) -> bool:
    return all(any(equal(each, other) for each in values) for other in others)


def _intersects(values: list[Any], others: list[Any]) -> bool:
    return any(equal(each, other) for each in values for other in others)


define("sets.contains", "list(A) list(A)", "bool", _contains, lambda a, b: 1 + len(a) * len(b))
define("sets.intersects", "list(A) list(A)", "bool", _intersects, lambda a, b: 1 + len(a) * len(b))
define(
    "sets.equivalent",
    "list(A) list(A)",
    "bool",
    lambda a, b: _contains(a, b) and _contains(b, a),
    lambda a, b: 1 + 2 * len(a) * len(b),
)
