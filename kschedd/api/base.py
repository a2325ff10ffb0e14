"""Base class of API objects: the manifest, and frequently read fields as attributes.

`raw` is the object as `kubectl get -o json` prints it. `raw` is never modified: an update creates a new dict that
shares unchanged parts.
"""

from collections.abc import Mapping
from typing import Any, Self

import attrs

from kschedd.values import FrozenDict, fast_frozen

Raw = Mapping[str, Any]
_NOTHING: Mapping[str, Any] = FrozenDict()  # shared by all objects without such a map


@attrs.frozen
class OwnerReference:
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool


@fast_frozen(eq=False)
class Object:
    """An object of any kind. Equality is identity: two versions of an object are two different objects."""

    kind: str
    name: str
    namespace: str  # "" for cluster-scoped kinds
    uid: str
    resource_version: int
    labels: Mapping[str, str]
    raw: Raw
    _read_only: Any = attrs.field(default=None, init=False, repr=False)  # cached read-only copy of this object

    @classmethod
    def from_raw(cls, raw: Raw) -> Self:
        meta = raw.get("metadata") or _NOTHING
        return cls(
            raw["kind"],
            meta.get("name", ""),
            meta.get("namespace") or "",
            meta.get("uid") or "",
            version_of(meta.get("resourceVersion")),
            meta.get("labels") or {},
            raw,
        )

    @property
    def key(self) -> str:
        """`namespace/name`, or only the name for a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def metadata(self) -> Raw:
        found: Raw = self.raw.get("metadata") or _NOTHING
        return found

    def at_version(self, version: int) -> Self:
        """Return the same object with this resourceVersion."""
        raw = {**self.raw, "metadata": {**self.metadata, "resourceVersion": str(version)}}
        return attrs.evolve(self, resource_version=version, raw=raw)

    @property
    def spec(self) -> Raw:
        found: Raw = self.raw.get("spec") or _NOTHING
        return found

    @property
    def status(self) -> Raw:
        found: Raw = self.raw.get("status") or _NOTHING
        return found

    @property
    def annotations(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.metadata.get("annotations") or _NOTHING
        return found

    @property
    def deleting(self) -> bool:
        return bool(self.metadata.get("deletionTimestamp"))

    @property
    def owner(self) -> OwnerReference | None:
        """The reference to the controller that owns this object, or None."""
        for ref in self.metadata.get("ownerReferences") or ():
            if ref.get("controller"):
                return OwnerReference(
                    ref.get("apiVersion", ""),
                    ref.get("kind", ""),
                    ref.get("name", ""),
                    ref.get("uid", ""),
                    True,
                )
        return None


def version_of(text: Any) -> int:
    """Return a resourceVersion as a number, or 0 if it is absent or not a number."""
    try:
        return int(text or 0)
    except ValueError:
        return 0


def with_fields(raw: Raw, section: str, **fields: Any) -> dict[str, Any]:
    """Return a copy of `raw` with these fields in `section` ("metadata", "spec", "status"); None removes a field."""
    changed = dict(raw.get(section) or {})
    for name, wanted in fields.items():
        if wanted is None:
            changed.pop(name, None)
        else:
            changed[name] = wanted
    return {**raw, section: changed}
