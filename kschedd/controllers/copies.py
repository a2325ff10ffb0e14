"""Copies of controllers for forks: a copy begins with the state of the original and then changes independently.

A controller's state consists of maps, sets, lists, timers and small objects, which contain immutable values (objects,
pods, frozen classes). `copy_of` copies the containers and shares the values, which `copy.deepcopy` cannot distinguish.
A container with only values is copied in one call: a map of 50,000 pods takes a millisecond.

A copy has no recorded object faults, because their retries belong to the original. It has None instead of a generator:
work in progress begins again in the copy.
"""

import enum
import types
from collections import OrderedDict, deque
from collections.abc import Generator, Iterable
from typing import Any, Final, TypeVar

from kschedd.api.pods import PodSignature, PodSpec
from kschedd.object_faults import FaultLedger
from kschedd.values import FrozenDict, FrozenList, is_value_class, run_steps

T = TypeVar("T")

_MAPS: Final = (dict, OrderedDict)
_SEQUENCES: Final = (list, set, deque)
_UNSHARED: Final = (FaultLedger, types.GeneratorType)
_STEP: Final = 250  # number of items copied between two pauses, in about 1 ms
_VALUES: Final = (
    *(str, bytes, int, float, bool, complex, type(None), tuple, frozenset, range, type),
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MappingProxyType),
    *(PodSpec, PodSignature),  # interned
    *(FrozenDict, FrozenList),
)
_is_value: dict[type, bool] = dict.fromkeys(_VALUES, True)


def copying(original: T) -> Generator[None, None, T]:
    """Copy a controller's state; an object that the state contains twice is copied once.

    The copying may be paused at each `yield` of the generator. The original must not change until the copy is
    complete.
    """
    made: T = yield from _copying(original, {})
    return made


def _copying(original: Any, copies: dict[int, Any]) -> Generator[None, None, Any]:
    """Copy as `_copied` does, with pauses between attributes and within large maps."""
    cls = type(original)
    if cls in _MAPS and len(original) > _STEP:
        copied = original.copy()
        copies[id(original)] = copied
        yield
        if not all(map(_value, set(map(type, original.values())))):
            for number, (key, item) in enumerate(original.items()):
                copied[key] = _copied(item, copies)
                if not number % _STEP:
                    yield
        return copied
    if cls in _MAPS or cls in _SEQUENCES or cls in _UNSHARED or _value(cls) or id(original) in copies:
        yield
        return _copied(original, copies)
    copied = object.__new__(cls)
    copies[id(original)] = copied
    for name in _attributes(original):
        item = yield from _copying(getattr(original, name), copies)
        object.__setattr__(copied, name, item)
    return copied


def copy_of(original: T) -> T:
    """Copy a controller's state without pauses."""
    return run_steps(copying(original))


def _value(cls: type) -> bool:
    known = _is_value.get(cls)
    if known is None:
        known = _is_value[cls] = is_value_class(cls) or issubclass(cls, enum.Enum)
    return known


def _copied(original: Any, copies: dict[int, Any]) -> Any:
    cls = type(original)
    if _value(cls):
        return original
    if cls is types.GeneratorType:
        return None
    known = copies.get(id(original))
    if known is not None:
        return known
    if cls in _MAPS:
        copied = original.copy()
        copies[id(original)] = copied
        if not all(map(_value, set(map(type, original.values())))):
            for key, item in original.items():
                copied[key] = _copied(item, copies)
        return copied
    if cls in _SEQUENCES:
        if all(map(_value, set(map(type, original)))):
            copied = original.copy()
        else:
            copied = cls(_copied(item, copies) for item in original)
        copies[id(original)] = copied
        return copied
    if cls is FaultLedger:
        copied = FaultLedger(original.component)
        copies[id(original)] = copied
        return copied
    copied = object.__new__(cls)
    copies[id(original)] = copied
    for name in _attributes(original):
        item = getattr(original, name)
        object.__setattr__(copied, name, item if _is_value.get(type(item)) else _copied(item, copies))
    return copied


_slots: dict[type, tuple[str, ...]] = {}


def _attributes(original: Any) -> Iterable[str]:
    """Return the names of the object's attributes, including slots."""
    cls = type(original)
    known = _slots.get(cls)
    if known is None:
        names = (name for each in cls.__mro__ for name in _listed(each.__dict__.get("__slots__", ())))
        known = _slots[cls] = tuple(name for name in names if name not in ("__weakref__", "__dict__"))
    return (*known, *original.__dict__) if hasattr(original, "__dict__") else known


def _listed(slots: str | Iterable[str]) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots
