"""Derived: a cache of values computed from one part of an object, such as its spec, until the part changes."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kschedd.api.objects import Object

T = TypeVar("T")


class Derived(Generic[T]):
    """A cache for the function `derive`, which may read only the `part` of an object and returns an immutable value.

    If an update does not change a part, the object contains the identical value: for example, a status update keeps the
    spec.
    """

    def __init__(self, derive: Callable[[Object], T], part: str = "spec") -> None:
        self._derive = derive
        self._part = part
        self._known: dict[str, tuple[Any, T]] = {}  # by uid of the object

    def of(self, obj: Object) -> T:
        part = obj.raw.get(self._part)
        known = self._known.get(obj.uid)
        if known is None or known[0] is not part:
            known = self._known[obj.uid] = part, self._derive(obj)
        return known[1]

    def forget(self, obj: Object) -> None:
        self._known.pop(obj.uid, None)
