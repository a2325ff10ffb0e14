"""Values worked out when first asked for, and then kept in the object.

`functools.cached_property` takes a lock at every first access up to Python 3.11, which costs more than most of what is
worked out here; nothing of ours is shared between threads while it is being filled in.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazily(Generic[T]):
    """A method that becomes an attribute of its instance when first read."""

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> "lazily[T]": ...
    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any]) -> "T | lazily[T]":
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._value(instance)
        return value

    def _value(self, instance: Any) -> T:
        return self._work_out(instance)
