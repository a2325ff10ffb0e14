"""Derived: what follows from a part of an object, such as its spec, worked out once for as long as that part stays."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kschedd.api.objects import Object

T = TypeVar("T")


class Derived(Generic[T]):
    """`derive`: a plain function of an object that reads nothing of it but the `part`; what it returns never changes.

    An update that leaves a part alone, as one of the status leaves the spec, keeps the very same value there.
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
