"""Deeply read-only API objects for plugins from plugin files.

Specs, signatures and raw manifests are shared by pods, the store and every cache, so a plugin that modified one of them
would corrupt the whole cluster. `read_only(obj)` is a read-only copy with the same fields, and the same class for
`isinstance`. The maps and lists of the copy are `FrozenDict` and `FrozenList`: dicts and lists whose mutating methods
raise TypeError. The raw manifest is copied on first access. One copy is made per object, spec and signature, and cached
in the original. Original and copy share no mutable values.
"""

from collections.abc import Mapping
from typing import Any, Final, Never, TypeVar, cast

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSignature, PodSpec
from kschedd.values import FrozenDict, frozen

O = TypeVar("O", bound=Object)  # noqa: E741 - an Object

_REFUSAL: Final = "an API object that a plugin is given is read-only"


class _ReadOnly:
    """A mixin that rejects every assignment. The fields of a new copy are set through their slots."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> Never:
        raise TypeError(f"{_REFUSAL}: {name} cannot be set")

    def __delattr__(self, name: str) -> Never:
        raise TypeError(f"{_REFUSAL}: {name} cannot be deleted")


_raw_of = Object.__dict__["raw"].__get__


class _Twin(_ReadOnly):
    __slots__ = ()

    @property
    def raw(self) -> Mapping[str, Any]:
        """The manifest, copied on first access."""
        found: Mapping[str, Any] = _raw_of(self)
        if not isinstance(found, FrozenDict):
            found = frozen(found)
            Object.__dict__["raw"].__set__(self, found)
        return found

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations, without a copy of the whole manifest."""
        found: Mapping[str, str] = frozen((_raw_of(self).get("metadata") or {}).get("annotations") or {})
        return found


class ReadOnlyObject(_Twin, Object):
    __slots__ = ()


class ReadOnlyNode(_Twin, Node):
    __slots__ = ()


class ReadOnlyPod(_Twin, Pod):
    __slots__ = ()

    @property
    def _shared_status(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = _raw_of(self).get("status")
        return found


class _ReadOnlySpec(_ReadOnly, PodSpec):
    pass


class _ReadOnlySignature(_ReadOnly, PodSignature):
    pass


def _slots(cls: type[Object]) -> tuple[tuple[str, Any], ...]:
    names = [field.name for field in attrs.fields(cls) if field.init]
    return tuple((name, next(c.__dict__[name] for c in cls.__mro__ if name in c.__dict__)) for name in names)


_SLOTS: Final = {cls: _slots(cls) for cls in (Pod, Node, Object)}
_TWINS: Final[dict[type[Object], type[Object]]] = {Pod: ReadOnlyPod, Node: ReadOnlyNode, Object: ReadOnlyObject}
_twin_of = Object.__dict__["_read_only"]


def read_only(obj: O) -> O:
    """Return the object's read-only copy; a read-only object is returned as it is."""
    twin = _twin_of.__get__(obj)
    if twin is None:
        if isinstance(obj, _Twin):
            return obj
        twin = _made(obj)
        _twin_of.__set__(obj, twin)
    return cast(O, twin)


def _made(obj: Object) -> Object:
    cls = type(obj)
    twin = object.__new__(_TWINS[cls])
    for _, slot in _SLOTS[cls]:
        slot.__set__(twin, slot.__get__(obj))
    _twin_of.__set__(twin, None)
    changed: dict[str, Any] = {}
    if isinstance(obj, Pod):
        signature = read_only_signature(obj.signature)
        changed = {"signature": signature, "labels": signature.labels}
    else:
        changed["labels"] = frozen(obj.labels)
    if isinstance(obj, Node):
        changed["allocatable"] = frozen(obj.allocatable)
    for name, slot in _SLOTS[cls]:
        if name in changed:
            slot.__set__(twin, changed[name])
    return twin


def read_only_signature(signature: PodSignature) -> PodSignature:
    twin: PodSignature | None = signature.__dict__.get("_read_only")
    if twin is None:
        if isinstance(signature, _ReadOnlySignature):
            return signature
        twin = object.__new__(_ReadOnlySignature)
        ignoring_node = signature._ignoring_node
        twin.__dict__.update(
            namespace=signature.namespace,
            labels=frozen(signature.labels),
            spec=read_only_spec(signature.spec),
            id=signature.id,
            _ignoring_node=None if ignoring_node is None else read_only_signature(ignoring_node),
        )
        signature.__dict__["_read_only"] = twin
    return twin


def read_only_spec(spec: PodSpec) -> PodSpec:
    twin: PodSpec | None = spec.__dict__.get("_read_only")
    if twin is None:
        if isinstance(spec, _ReadOnlySpec):
            return spec
        twin = object.__new__(_ReadOnlySpec)
        spec_without_node_affinity = (
            None if spec.spec_without_node_affinity is None else read_only_spec(spec.spec_without_node_affinity)
        )
        twin.__dict__.update(
            raw=frozen(spec.raw),
            key=spec.key,
            spec_without_node_affinity=spec_without_node_affinity,
            spec_without_amounts=None,
        )
        spec.__dict__["_read_only"] = twin
    return twin
