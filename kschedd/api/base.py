"""API objects as the rest of kschedd passes them around: the manifest as it came, with what everybody reads taken out.

`raw` is the object exactly as `kubectl get -o json` would print it. Nothing in it is ever changed in place: an update
makes a new dict that shares what stayed the same, so old and new may be held for as long as somebody likes.
"""

from collections.abc import Mapping
from typing import Any, Self

import attrs

from kschedd.values import FrozenDict, fast_frozen

Raw = Mapping[str, Any]
_NOTHING: Mapping[str, Any] = FrozenDict()  # of all objects that have none


@attrs.frozen
class OwnerReference:
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool


@fast_frozen(eq=False)
class Object:
    """Any object of any kind. Identity is equality: two versions of one object are two objects."""

    kind: str
    name: str
    namespace: str  # "" for cluster-scoped kinds
    uid: str
    resource_version: int
    labels: Mapping[str, str]
    raw: Raw
    _read_only: Any = attrs.field(default=None, init=False, repr=False)  # see `kschedd.api.read_only`

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
        """`namespace/name`, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def metadata(self) -> Raw:
        found: Raw = self.raw.get("metadata") or _NOTHING
        return found

    def at_version(self, version: int) -> Self:
        """The object as it is, with this resourceVersion."""
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
        """The controller that owns this object, if one does."""
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
    """A resourceVersion as the number it is; 0 without one."""
    try:
        return int(text or 0)
    except ValueError:
        return 0


def with_fields(raw: Raw, section: str, **fields: Any) -> dict[str, Any]:
    """A copy of `raw` in which `section` ("metadata", "spec", "status") has these fields; None takes one away."""
    changed = dict(raw.get(section) or {})
    for name, wanted in fields.items():
        if wanted is None:
            changed.pop(name, None)
        else:
            changed[name] = wanted
    return {**raw, section: changed}
