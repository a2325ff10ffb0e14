"""Attributes computed on first access and cached in the instance.

Up to Python 3.11, `functools.cached_property` takes a lock at every first access, which costs more than most
computations of this project. Without a lock, an instance must not be used by several threads while its attributes are
being computed.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached(Generic[T]):
    """A cached property without a lock: the method's result becomes an instance attribute on first access."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> "cached[T]": ...
    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any]) -> "T | cached[T]":
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
