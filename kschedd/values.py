"""Values that are made for every pod, several times over: attrs classes that nobody changes once they are made.

`attrs.frozen` says the same and also refuses assignments while the program runs; for that every field is set through
`object.__setattr__`, which makes such an object four times as expensive to make (a Pod: 1.3 us instead of 0.3). A pod
on its way through the daemon is some twenty of them. So for these the type checker alone refuses.

`FrozenDict` and `FrozenList` are what leaves for code that is not ours.
"""

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Never

import attrs

if TYPE_CHECKING:
    from attrs import frozen as value
else:

    def value(cls: type | None = None, *, eq: bool = True) -> Any:
        """As `attrs.frozen`; but for the type checker, assignments are not refused."""
        return attrs.define(cls, eq=eq, unsafe_hash=eq)


class FrozenDict(dict[str, Any]):
    """A dict that nobody changes once it is made. `dict(it)` and `copy.deepcopy(it)` are ordinary dicts."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return {key: copy.deepcopy(item, memo) for key, item in self.items()}


class FrozenList(list[Any]):
    """A list that nobody changes once it is made."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return list, (list(self),)

    def __deepcopy__(self, memo: Any) -> list[Any]:
        return [copy.deepcopy(item, memo) for item in self]


def _refuse(self: Any, *args: Any, **named: Any) -> Never:
    raise TypeError("this is read-only: make a copy and change that")


_CHANGING: Final = {
    FrozenDict: ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"),
    FrozenList: (
        *("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop"),
        *("remove", "reverse", "sort"),
    ),
}
for _cls, _names in _CHANGING.items():
    for _name in _names:
        setattr(_cls, _name, _refuse)


def frozen(value: Any) -> Any:
    """A copy whose maps and lists, at every depth, cannot be changed."""
    kind = type(value)
    if kind is str or kind is int or kind is FrozenDict or kind is FrozenList:
        return value
    if isinstance(value, Mapping):
        return FrozenDict([(key, frozen(item)) for key, item in value.items()])
    if isinstance(value, list):
        return FrozenList([frozen(item) for item in value])
    return value


__all__ = ["FrozenDict", "FrozenList", "frozen", "value"]
