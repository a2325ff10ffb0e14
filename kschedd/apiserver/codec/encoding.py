"""Objects encoded as bytes, for lists and watches, with a cache of recently encoded objects.

Objects never change, so all watchers share the bytes of an object: a thousand watchers require only one encoding.

Owns: its cache, whose limit in bytes also counts objects that only the cache keeps in memory.
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
_OBJECT: Final = 6  # size of an object in memory, as a multiple of the size of its encoding

_PARTIAL: Final = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}


class Encoder:
    """A cache of encoded objects."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._held = self._most_held = 0
        self._memory: OrderedDict[tuple[int, str], tuple[Any, bytes]] = OrderedDict()

    def whole(self, raw: Raw, api_version: str) -> bytes:
        """Return the object with its kind and version, as a watch or a get sends it."""
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
        """Return the current and the highest number of bytes."""
        return self._held, self._most_held


def partial(raw: Raw) -> dict[str, Any]:
    """Return only the metadata, without the annotation that upstream derives when it converts a whole DaemonSet."""
    meta = with_resolved_entries(raw).get("metadata") or {}
    return {**_PARTIAL, "metadata": _without_template_generation(raw, meta)}


def row_object(raw: Raw) -> dict[str, Any]:
    """Return the object of a table row: metadata without managed fields, which a table does not need."""
    meta = {name: value for name, value in (raw.get("metadata") or {}).items() if name != MANAGED}
    return {**_PARTIAL, "metadata": _without_template_generation(raw, meta)}


def _without_template_generation(raw: Raw, meta: Raw) -> Raw:
    if raw.get("kind") != "DaemonSet" or TEMPLATE_GENERATION not in (meta.get("annotations") or ()):
        return meta
    kept = {key: value for key, value in meta["annotations"].items() if key != TEMPLATE_GENERATION}
    rest = {field: value for field, value in meta.items() if field != "annotations"}
    return {**rest, "annotations": kept} if kept else rest


def listed_item(raw: Raw, api_version: str) -> Raw:
    """Return an object in the form of an item of a list. The list states the kind only once for all items."""
    return {name: value for name, value in converted(raw, api_version).items() if name not in ("kind", "apiVersion")}
