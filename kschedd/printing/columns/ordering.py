"""The order of `--sort-by`: quantities by amount, times by date, numbers by size, other values in natural order.

The type of a field is determined from all its values, so that the order is consistent: cpu values are quantities if
every value is a quantity. Objects without the field come first.

Source: Kubernetes v1.34, kubectl/pkg/cmd/get/sorter.go.
"""

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from kschedd.api.quantity import QuantityError, parse

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_PIECE: Final = re.compile(r"\d+|\D")

Key = tuple[int, Any]


def natural(text: str) -> tuple[tuple[int, int, str, int], ...]:
    """Return a natural sort key: `web-9` sorts before `web-10`."""
    # A run of digits sorts like a digit among other characters, then by its value, then by the number of leading zeros.
    # Values are compared by their length first, because a run may be longer than `int` accepts.
    return tuple(
        (ord("0"), len(value := piece.lstrip("0")), value, len(piece))
        if piece.isascii() and piece.isdigit()
        else (ord(piece[0]), 0, "", 0)
        for piece in _PIECE.findall(text)
    )


def keys(values: Sequence[Any]) -> list[Key]:
    """Return a sort key for each value; None represents a missing value."""
    present = [value for value in values if value is not None]
    for reading in (_number, _quantity, _time):
        try:
            read = iter([reading(value) for value in present])
        except (ValueError, QuantityError):
            continue
        return [(0, 0) if value is None else (1, next(read)) for value in values]
    return [(0, ()) if value is None else (1, natural(_text(value))) for value in values]


def _number(value: Any) -> float | int:
    if isinstance(value, bool | int | float):
        return value
    raise ValueError(value)


def _quantity(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(value)
    return parse(value)


def _time(value: Any) -> datetime.datetime:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise ValueError(value)
    return datetime.datetime.fromisoformat(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def sort_by(objects: list[Any], value_of: Callable[[Any], Any]) -> bool:
    """Sort in place by the results of `value_of`.

    Return False, without sorting, if `value_of` returns None for every object.
    """
    values = [value_of(one) for one in objects]
    if objects and all(value is None for value in values):
        return False
    order = keys(values)
    objects[:] = [objects[place] for place in sorted(range(len(objects)), key=order.__getitem__)]
    return True
