"""Writes as values: what a controller wants done, before anybody does it.

The same values mean the same requests to a real API server, so a rule that returns them need not know which it is.
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
    """Replace the object; a resourceVersion it names must still be the current one."""

    raw: Raw
    subresource: Subresource = ""


MOST_TRIES = 4
"""How often kube-scheduler sends a request at most."""
_FAILED = (500, 503)
_CONFLICT = 409


def is_sent_again(code: int, why: str, *, conflicts: bool = False) -> bool:
    """Return whether a request is sent again that was answered with this code (0: it was not answered)."""
    failed = code in _FAILED or (conflicts and code == _CONFLICT)
    return failed or (not code and "connection refused" in why.lower())


@fast_frozen
class Bind:
    """Give the pod its node; only if `uid` ("": any) is still the pod's.

    `tries`: how often at most a real API server is asked that fails to answer, or answers that it has failed.
    """

    namespace: str
    name: str
    uid: str
    node_name: str
    tries: int = 1


@attrs.frozen(eq=False)
class Patch:
    """An RFC 7386 merge patch; a resourceVersion or uid in its metadata is a precondition.

    Where other programs write as well, as in a real cluster: `seen` is the object that it was made from, so that what
    others have meanwhile put into a list stays; `guarded`: it is done only if the object is still as it was seen.
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
    """Delete the pod unless its disruption budget forbids that for now; only if `uid` ("": any) is still the pod's."""

    namespace: str
    name: str
    uid: str = ""
    grace_period_s: int | None = None


@attrs.frozen
class FinalizeNamespace:
    name: str


Write = Create | Update | Bind | Patch | Delete | Evict | FinalizeNamespace

_STATUS_OF = ("Pod", "PodGroup.scheduling.k8s.io")


def tries_of(write: Write) -> int:
    """Return how often at most a write of the scheduler is sent to a real API server that fails to answer it."""
    match write:
        case Bind():
            return write.tries
        case Patch(kind, subresource="status") if kind in _STATUS_OF:
            return MOST_TRIES
    return 1


def patch_of(obj: Object, patch: Raw, subresource: Subresource = "", *, exactly: bool = False) -> Patch:
    """A patch of this very object (not of another that took its name); `exactly`: of this very version of it."""
    meta: dict[str, Any] = {"uid": obj.uid}
    if exactly:
        meta["resourceVersion"] = str(obj.resource_version)
    merged = {**patch, "metadata": {**(patch.get("metadata") or {}), **meta}}
    return Patch(obj.kind, obj.namespace, obj.name, merged, subresource, obj, exactly)


def status_of(obj: Object, status: Raw, *, guarded: bool = False) -> Patch:
    """A patch of this object's status."""
    patch = {"metadata": {"uid": obj.uid}, "status": status}
    return Patch(obj.kind, obj.namespace, obj.name, patch, "status", obj, guarded)


def status_write(obj: Object, status: Mapping[str, Any], always: Collection[str] = ()) -> list[Write]:
    """Return the patch that gives the object this status, if it differs; fields in `always` are stated even if 0.

    Other counts of 0 are left out, as the API's types do with `omitempty`.

    Fields that `status` does not have stay as they are.
    """
    wanted = {name: value if value or name in always else None for name, value in status.items()}
    present = obj.status
    return [status_of(obj, wanted)] if any(present.get(name) != value for name, value in wanted.items()) else []
