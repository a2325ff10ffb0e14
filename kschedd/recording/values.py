"""Values of a recording as bytes: plain values, and the few classes that plugins and extenders return.

Reading creates only instances of these classes, from plain values: an untrusted recording cannot run code.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

import attrs
import msgpack
import numpy as np

from kschedd.api.pods import Pod
from kschedd.api.simulation.pod_behavior import PodBehavior
from kschedd.controllers.nodes.zones import NodeLifecycleConfig
from kschedd.controllers.options import ControllerOptions
from kschedd.errors import KscheddError
from kschedd.extenders.calls import ExtenderFailure
from kschedd.extenders.messages import FilterResult, MetaVictims
from kschedd.framework.events import ActionType, ClusterEvent, CustomResource, EventResource, QueueingHint
from kschedd.framework.faults import PluginError, PluginTimeout
from kschedd.framework.interface import PostFilterResult, PreFilterResult
from kschedd.framework.status import Code, Status
from kschedd.framework.writes import Plan
from kschedd.store.writes import Bind, Create, Delete, Evict, Patch, Update

_TUPLE, _SET, _OBJECT, _ARRAY, _ENUM, _BIG, _POD, _CALLABLE = range(1, 9)

_CLASSES: Final[Mapping[str, type[Any]]] = {
    cls.__name__: cls
    for cls in (
        *(Status, PreFilterResult, PostFilterResult, Plan, Bind, Create, Delete, Evict, Patch, Update),
        *(PluginError, PluginTimeout, FilterResult, MetaVictims, ExtenderFailure, ClusterEvent, CustomResource),
        *(ControllerOptions, NodeLifecycleConfig, PodBehavior),
    )
}
_ENUMS: Final[Mapping[str, type[Enum]]] = {cls.__name__: cls for cls in (Code, EventResource, ActionType, QueueingHint)}
_DEEPEST: Final = 64  # maximum nesting of classes, tuples and sets, because each level is a recursive call, also in C
_LEFT_OUT: Final = {"details"}  # fields of a PostFilterResult that only `explain` uses


@attrs.frozen
class PodRef:
    """A reference to a pod within a result; the reader of the recording knows the pod."""

    uid: str


class Ready:
    """A placeholder for the `ready` function of a plan, whose results are recorded one by one."""

    def __call__(self, cluster: Any) -> Any:
        raise UnreadableValue("the recording contains the results of a plan's `ready` function, not its code")


class UnreadableValue(KscheddError):
    """A value does not occur in any recording of this version."""


def pack(value: Any) -> bytes:
    """Return the packed value. Raises TypeError if the value has another class."""
    packed: bytes = msgpack.packb(value, default=_encoded, strict_types=True)
    return packed


def unpack(packed: bytes, pod: Callable[[PodRef], Any] = lambda ref: ref, depth: int = 0) -> Any:
    """Return the value. `pod` returns the pod to which a reference refers. Raises UnreadableValue."""
    if depth > _DEEPEST:
        raise UnreadableValue(f"a value is nested more than {_DEEPEST} levels deep")

    def decoded(code: int, data: bytes) -> Any:
        if code == _BIG:
            return int(data.decode())
        if code == _CALLABLE:
            return Ready()
        inner = unpack(data, pod, depth + 1)
        if code == _TUPLE:
            return tuple(inner)
        if code == _SET:
            return frozenset(inner)
        if code == _POD:
            return pod(PodRef(inner))
        if code == _ENUM:
            return _ENUMS[inner[0]](inner[1])
        if code == _ARRAY:
            return np.frombuffer(inner[1], dtype=np.dtype(inner[0])).copy()
        if code == _OBJECT:
            return _CLASSES[inner[0]](*inner[1:])
        raise UnreadableValue(f"there is no value of code {code}")

    try:
        return msgpack.unpackb(packed, ext_hook=decoded, strict_map_key=False)
    except (ValueError, LookupError, TypeError, AttributeError, msgpack.UnpackException) as wrong:
        raise UnreadableValue(f"a value cannot be read: {wrong}") from wrong


def _encoded(value: Any) -> Any:
    if isinstance(value, Enum):
        return msgpack.ExtType(_ENUM, pack([type(value).__name__, value.value]))
    if isinstance(value, tuple):
        return msgpack.ExtType(_TUPLE, pack(list(value)))
    if isinstance(value, frozenset | set):
        return msgpack.ExtType(_SET, pack(sorted(value, key=repr)))
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(_ARRAY, pack([value.dtype.str, value.tobytes()]))
    if isinstance(value, Pod):
        return msgpack.ExtType(_POD, pack(value.uid))
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list):
        return list(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):  # more than 64 bits
        return msgpack.ExtType(_BIG, str(int(value)).encode())
    name = type(value).__name__
    if _CLASSES.get(name) is type(value):
        fields = [None if a.name in _LEFT_OUT else getattr(value, a.name) for a in attrs.fields(type(value)) if a.init]
        return msgpack.ExtType(_OBJECT, pack([name, *fields]))
    if callable(value):
        return msgpack.ExtType(_CALLABLE, b"")
    raise TypeError(f"a {name} is no value of a recording")
