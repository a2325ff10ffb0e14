"""Objects as bytes: what a list or a watch sends of each. Lately encoded objects are remembered.

Objects never change, so the bytes of one are those of all who watch it: a thousand watchers cost one encoding.
Owns: its memory, bounded in bytes, those of the objects included, which may be gone otherwise.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from kschedd.api.objects import Raw
from kschedd.apiserver.codec.negotiation import encode
from kschedd.registry.strategy import TEMPLATE_GENERATION
from kschedd.service.operations.versions import converted
from kschedd.store.managing import MANAGED, with_resolved_entries

_MOST: Final = 64 << 20  # bytes
_OBJECT: Final = 6  # times its encoding is what an object takes

_PARTIAL: Final = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}


class Encoder:
    """See the module."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._held = self._most_held = 0
        self._memory: OrderedDict[tuple[int, str], tuple[Any, bytes]] = OrderedDict()

    def whole(self, raw: Raw, api_version: str) -> bytes:
        """The object with its kind and version, as a watch or a get shows it."""
        return self._remembered(raw, api_version, lambda: encode(converted(raw, api_version)))

    def partial(self, raw: Raw) -> bytes:
        return self._remembered(raw, "partial", lambda: encode(partial(raw)))

    def _remembered(self, raw: Raw, how: str, make: Callable[[], bytes]) -> bytes:
        key = (id(raw), how)
        known = self._memory.get(key)
        if known is not None:
            return known[1]
        data = make()
        self._memory[key] = (raw, data)
        self._held += (1 + _OBJECT) * len(data)
        self._most_held = max(self._most_held, self._held)
        while self._held > self._most:
            _, (_, oldest) = self._memory.popitem(last=False)
            self._held -= (1 + _OBJECT) * len(oldest)
        return data

    def used(self) -> tuple[int, int]:
        """Bytes now, and at most so far."""
        return self._held, self._most_held


def partial(raw: Raw) -> dict[str, Any]:
    """Metadata only, without the annotation that upstream makes of a field when it converts a whole DaemonSet."""
    meta = with_resolved_entries(raw).get("metadata") or {}
    return {**_PARTIAL, "metadata": _without_template_generation(raw, meta)}


def row_object(raw: Raw) -> dict[str, Any]:
    """What comes with a row of a table: metadata, without the managers, which nobody looks up in a table."""
    meta = {name: value for name, value in (raw.get("metadata") or {}).items() if name != MANAGED}
    return {**_PARTIAL, "metadata": _without_template_generation(raw, meta)}


def _without_template_generation(raw: Raw, meta: Raw) -> Raw:
    if raw.get("kind") != "DaemonSet" or TEMPLATE_GENERATION not in (meta.get("annotations") or ()):
        return meta
    kept = {key: value for key, value in meta["annotations"].items() if key != TEMPLATE_GENERATION}
    rest = {field: value for field, value in meta.items() if field != "annotations"}
    return {**rest, "annotations": kept} if kept else rest


def listed_item(raw: Raw, api_version: str) -> Raw:
    """An object as an item of a list, which names the kind once for all."""
    return {name: value for name, value in converted(raw, api_version).items() if name not in ("kind", "apiVersion")}
