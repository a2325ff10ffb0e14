"""Serialization of pods, nodes, and the plugin's entries in `state.data` for worker processes.

API objects are sent as their fields, without cached values; a read-only object is received as a read-only object. A
class or function of a plugin's file is sent as its name, because the file is not an importable module. `read` looks up
the name in the module that the receiver passes.

Based on pickle. Raises NotSendable.
"""

import io
import pickle
import sys
from collections.abc import Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSignature, PodSpec
from kschedd.api.read_only import ReadOnlyNode, ReadOnlyObject, ReadOnlyPod, read_only
from kschedd.errors import KscheddError
from kschedd.framework.faults import plain_text

_READ_ONLY: Final[Mapping[type, type]] = {ReadOnlyPod: Pod, ReadOnlyNode: Node, ReadOnlyObject: Object}


@attrs.define(eq=False)
class NotSendable(KscheddError):
    why: str


@attrs.frozen(eq=False)
class NodeSnapshot:
    """A node in a worker process: the content of a `NodeInfo`, without the node table."""

    node: Node
    pods: Sequence[Pod]
    _allocatable: Mapping[str, int]
    _requested: Mapping[str, int]
    used_ports: frozenset[tuple[str, str, int]]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.labels

    @property
    def allocatable(self) -> dict[str, int]:
        return dict(self._allocatable)

    @property
    def requested(self) -> dict[str, int]:
        return dict(self._requested)


def made(cls: type, fields: Mapping[str, Any], twin: bool) -> Any:
    obj = cls(**fields)
    return read_only(obj) if twin else obj


def attribute(name: str) -> Any:
    """Represent an object of the plugin's module, with which the receiver replaces this function."""
    raise pickle.UnpicklingError(f"{name} belongs to a plugin's file")


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, module: str) -> None:
        super().__init__(file, 5)
        self._module = module

    def reducer_override(self, obj: Any) -> Any:
        cls = type(obj)
        if isinstance(obj, type | FunctionType):
            if obj.__module__ == self._module and obj.__module__ not in sys.modules:
                return attribute, (obj.__qualname__,)
            return NotImplemented
        if isinstance(obj, Object | PodSignature | PodSpec):
            base = _READ_ONLY.get(cls)
            if base is None:
                base = next(one for one in cls.__mro__ if not one.__name__.startswith("_ReadOnly"))
            fields = {one.alias: getattr(obj, one.name) for one in attrs.fields(base) if one.init}
            return made, (base, fields, cls in _READ_ONLY)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, module: ModuleType | None) -> None:
        super().__init__(file)
        self._named = module

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (__name__, attribute.__name__):
            return self._attribute
        return super().find_class(module, name)

    def _attribute(self, name: str) -> Any:
        found: Any = self._named
        for part in name.split("."):
            found = getattr(found, part)
        return found


def written(value: Any, module: str = "") -> bytes:
    """Serialize a value. `module` is the name of the plugin's module. Raises NotSendable."""
    out = io.BytesIO()
    try:
        _Pickler(out, module).dump(value)
    except Exception as fault:  # the plugin's values may raise any exception
        raise NotSendable(plain_text(f"{type(fault).__name__}: {fault}")) from None
    return out.getvalue()


def read(data: bytes, module: ModuleType | None = None) -> Any:
    return _Unpickler(io.BytesIO(data), module).load()
