"""Writes as values: a controller returns them, and they are executed later.

The same values can be sent to a real API server, so a controller's rules do not depend on the kind of cluster.
"""

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.store.creating.updates import Subresource
from kschedd.store.deletion import Propagation
from kschedd.values import fast_frozen


@attrs.frozen(eq=False)
class Create:
    raw: Raw


@attrs.frozen(eq=False)
class Update:
    """Replace the object; a resourceVersion in the object must be the current one."""

    raw: Raw
    subresource: Subresource = ""


MOST_TRIES = 4
"""Maximum number of times that kube-scheduler sends a request."""
_FAILED = (500, 503)
_CONFLICT = 409


def is_sent_again(code: int, why: str, *, conflicts: bool = False) -> bool:
    """Return whether a request is retried after a response with this code (0: no response)."""
    failed = code in _FAILED or (conflicts and code == _CONFLICT)
    return failed or (not code and "connection refused" in why.lower())


@fast_frozen
class Bind:
    """Bind the pod to the node if the pod still has the UID `uid` (with "", any UID).

    `tries` is the maximum number of attempts with a real API server, if a request fails or gets no response.
    """

    namespace: str
    name: str
    uid: str
    node_name: str
    tries: int = 1


@attrs.frozen(eq=False)
class Patch:
    """An RFC 7386 merge patch; a resourceVersion or UID in its metadata is a precondition.

    In a real cluster, other programs also write the object. `seen` is the object from which the patch was computed;
    list items that other writers added later are not removed. With `guarded`, the patch is applied only if the object
    still equals `seen`.
    """

    kind: str
    namespace: str
    name: str
    patch: Raw
    subresource: Subresource = ""
    seen: Object | None = None
    guarded: bool = False


@attrs.frozen
class Delete:
    kind: str
    namespace: str
    name: str
    uid: str = ""
    grace_period_s: int | None = None
    propagation: Propagation = "Background"


@fast_frozen
class Evict:
    """Evict the pod if its disruption budget allows this and the pod still has the UID `uid` (with "", any UID)."""

    namespace: str
    name: str
    uid: str = ""
    grace_period_s: int | None = None


@attrs.frozen
class FinalizeNamespace:
    name: str


@attrs.frozen
class RenewLease:
    """A write of the current renewal of a Lease that kschedd renews, without validation and admission."""

    namespace: str
    name: str


Write = Create | Update | Bind | Patch | Delete | Evict | FinalizeNamespace | RenewLease

_STATUS_OF = {"Pod", "PodGroup.scheduling.k8s.io"}


def tries_of(write: Write) -> int:
    """Return the maximum number of attempts for a write of the scheduler to a real API server."""
    match write:
        case Bind():
            return write.tries
        case Patch(kind, subresource="status") if kind in _STATUS_OF:
            return MOST_TRIES
    return 1


def patch_of(obj: Object, patch: Raw, subresource: Subresource = "", *, exactly: bool = False) -> Patch:
    """Return a patch for this object, but not for a later object with its name; `exactly`: only for this version."""
    meta: dict[str, Any] = {"uid": obj.uid}
    if exactly:
        meta["resourceVersion"] = str(obj.resource_version)
    merged = {**patch, "metadata": {**(patch.get("metadata") or {}), **meta}}
    return Patch(obj.kind, obj.namespace, obj.name, merged, subresource, obj, exactly)


def status_of(obj: Object, status: Raw, *, guarded: bool = False) -> Patch:
    """Return a patch of this object's status."""
    patch = {"metadata": {"uid": obj.uid}, "status": status}
    return Patch(obj.kind, obj.namespace, obj.name, patch, "status", obj, guarded)


def status_write(obj: Object, status: Mapping[str, Any], always: Collection[str] = ()) -> list[Write]:
    """Return the patch that sets this status if it differs; fields in `always` are included even if 0.

    Other counts of 0 are omitted, as in the API's types with `omitempty`. Fields that are missing in `status` do not
    change.
    """
    wanted = {name: value if value or name in always else None for name, value in status.items()}
    present = obj.status
    return [status_of(obj, wanted)] if any(present.get(name) != value for name, value in wanted.items()) else []
