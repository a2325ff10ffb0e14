"""Writes as values: what a controller wants done, before anybody does it.

The same values mean the same requests to a real API server, so a rule that returns them need not know which it is.
"""

from typing import Any

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.store.deletion import Propagation
from kschedd.store.store import Store
from kschedd.store.updates import Subresource
from kschedd.values import value


@attrs.frozen(eq=False)
class Create:
    raw: Raw


@attrs.frozen(eq=False)
class Update:
    """Replace the object; a resourceVersion it names must still be the current one."""

    raw: Raw
    subresource: Subresource = ""


@value
class Bind:
    """Give the pod its node; only if `uid` ("": any) is still the pod's."""

    namespace: str
    name: str
    uid: str
    node_name: str


@attrs.frozen(eq=False)
class Patch:
    """An RFC 7386 merge patch; a resourceVersion or uid in its metadata is a precondition."""

    kind: str
    namespace: str
    name: str
    patch: Raw
    subresource: Subresource = ""


@attrs.frozen
class Delete:
    kind: str
    namespace: str
    name: str
    uid: str = ""
    grace_period_s: int | None = None
    propagation: Propagation = "Background"


@attrs.frozen
class FinalizeNamespace:
    name: str


Write = Create | Update | Bind | Patch | Delete | FinalizeNamespace


def patch_of(obj: Object, patch: Raw, subresource: Subresource = "", *, exactly: bool = False) -> Patch:
    """A patch of this very object (not of another that took its name); `exactly`: of this very version of it."""
    meta: dict[str, Any] = {"uid": obj.uid}
    if exactly:
        meta["resourceVersion"] = str(obj.resource_version)
    merged = {**patch, "metadata": {**(patch.get("metadata") or {}), **meta}}
    return Patch(obj.kind, obj.namespace, obj.name, merged, subresource)


def status_of(obj: Object, status: Raw) -> Patch:
    """A patch of this object's status."""
    return Patch(obj.kind, obj.namespace, obj.name, {"metadata": {"uid": obj.uid}, "status": status}, "status")


def perform(store: Store, write: Write) -> Object:
    """Do one write; raises what the store raises."""
    match write:
        case Create(raw):
            return store.create(raw)
        case Update(raw, subresource):
            return store.update(raw, subresource=subresource)
        case Bind(namespace, name, uid, node_name):
            return store.bind(namespace, name, node_name, uid=uid)
        case Patch(kind, namespace, name, patch, subresource):
            return store.merge_patch(kind, namespace, name, patch, subresource=subresource)
        case Delete(kind, namespace, name, uid, grace, propagation):
            return store.delete(kind, namespace, name, grace_period_s=grace, uid=uid, propagation=propagation)
        case FinalizeNamespace(name):
            return store.finalize_namespace(name)
