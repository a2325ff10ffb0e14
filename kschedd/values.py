"""Immutable values on the hot path, several of which are created for each pod: cheap alternatives to `attrs.frozen`.

`attrs.frozen` rejects assignments at run time. A frozen attrs class sets every field through `object.__setattr__`,
which makes construction four times as expensive (a Pod: 1.3 us instead of 0.3). The processing of one pod in the daemon
creates about twenty such objects. Classes declared with `fast_frozen` are therefore frozen only for the type checker.

`FrozenDict` and `FrozenList` are the read-only maps and lists that out-of-tree plugins receive.
"""

import copy
from collections.abc import Callable, Generator, Iterable, Mapping
from itertools import islice
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, Never, TypeVar

import attrs

T = TypeVar("T")


def as_map(value: object) -> Mapping[str, Any]:
    """Return a map unchanged, or an empty map for any other value; for fields that have not been validated yet."""
    return value if isinstance(value, dict | Mapping) else {}


@recursive_repr("...")
def _shown(value: Any) -> str:
    """Return a text like the `__repr__` that attrs generates."""
    shown = [(each.name, getattr(value, each.name, attrs.NOTHING)) for each in attrs.fields(type(value)) if each.repr]
    return f"{type(value).__qualname__.rpartition('>.')[2]}({', '.join(f'{name}={each!r}' for name, each in shown)})"


if TYPE_CHECKING:
    from attrs import frozen as fast_frozen
else:

    def fast_frozen(cls: type | None = None, *, eq: bool = True) -> Any:
        """Define a class as `attrs.frozen` does, except that only the type checker rejects assignments."""
        if cls is None:
            return lambda decorated: fast_frozen(decorated, eq=eq)
        made = attrs.define(cls, eq=eq, unsafe_hash=eq, repr=False)
        if "__repr__" not in vars(cls):
            made.__repr__ = _shown  # one function for all classes, because attrs would compile one for each class
        made.IS_VALUE = True  # for `is_value_class`
        return made


def is_value_class(cls: type) -> bool:
    """Return whether instances never change: the class was declared with `attrs.frozen` or `fast_frozen`."""
    return bool(cls.__dict__.get("IS_VALUE")) or vars(_Frozen)["__setattr__"] is cls.__setattr__


@attrs.frozen
class _Frozen:
    """Provides the `__setattr__` that all frozen classes of attrs share."""


def run_steps(steps: Generator[Any, None, T], check: Callable[[], None] | None = None) -> T:
    """Run a generator to completion, and return its result; `check` is called after each step, and may raise."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            value: T = done.value
            return value
        if check is not None:
            check()


def in_parts(items: Iterable[T], size: int) -> Generator[list[T], None, None]:
    """Yield the items in parts of this size, for work that pauses after each part."""
    left = iter(items)
    while part := list(islice(left, size)):
        yield part


class FrozenDict(dict[str, Any]):
    """A read-only dict: mutating methods raise TypeError.

    `dict(...)` and `copy.deepcopy(...)` return ordinary dicts.
    """

    __slots__ = ()

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return {key: copy.deepcopy(item, memo) for key, item in self.items()}


class FrozenList(list[Any]):
    """A read-only list: mutating methods raise TypeError."""

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
    """Return a deeply read-only copy of `value`."""
    kind = type(value)
    if kind is str or kind is int or kind is FrozenDict or kind is FrozenList:
        return value
    if isinstance(value, Mapping):
        return FrozenDict([(key, frozen(item)) for key, item in value.items()])
    if isinstance(value, list):
        return FrozenList([frozen(item) for item in value])
    return value


__all__ = ["FrozenDict", "FrozenList", "fast_frozen", "frozen", "in_parts", "is_value_class", "run_steps"]
