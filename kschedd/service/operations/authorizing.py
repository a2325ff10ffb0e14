"""Authorization of requests by RBAC objects, for users who are judged: which permission a request needs.

The REST API checks its requests before it reads them, except the creation of an object by an apply.

Raises: AccessDenied.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.access.requests import AccessRequest
from kschedd.access.users import User
from kschedd.api.schemas.kinds import BY_NAME, Kind, lookup
from kschedd.service.cluster import ClusterBackend
from kschedd.service.request import Request
from kschedd.service.table import Call
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.custom_resources.kinds import defined_kind, definitions
from kschedd.store.errors import AccessDenied


def authorize(store: ClusterReader, request: Request) -> None:
    """Raise AccessDenied if the user of a write has no permission."""
    user = request.user
    if user is None or not user.judged or request.authorized:
        return
    raw: Any = request.body
    if request.kind:
        kind = BY_NAME.get(request.kind) or _custom_kind(store, request.kind)
    else:
        kind = store.kind_of(raw)
    meta = raw.get("metadata") if isinstance(raw, Mapping) else None
    meta = meta if isinstance(meta, Mapping) else {}
    name = request.name or str(meta.get("name") or "")
    namespace = request.namespace or str(meta.get("namespace") or "default") if kind.namespaced else ""
    verb: str = request.verb
    if verb == "apply":
        verb = "create" if store.find(kind.name, namespace, name) is None else "patch"
    needed = _needed(user.user, verb, kind, namespace, "" if verb == "create" and not request.subresource else name)
    check(store, attrs.evolve(needed, subresource=request.subresource))


def _custom_kind(store: ClusterReader, name: str) -> Kind:
    defined = (defined_kind(definition) for definition in definitions(store))
    return next((kind for kind in defined if kind.name == name), lookup(name))


def check(store: ClusterReader, needed: AccessRequest) -> None:
    """Raise AccessDenied if RBAC objects do not allow this request."""
    decision = store.rbac.judge(needed)
    if not decision.allowed:
        raise AccessDenied(needed, decision.reason)


async def authorize_read(
    cluster: ClusterBackend, call: Call, verb: str, kind: Kind | None, namespace: str, name: str = ""
) -> None:
    """Raise AccessDenied if the user of a call may not read objects of this kind (None: of all kinds)."""
    user = call.services.caller.user
    if not user.judged:
        return
    if kind is None:
        needed = AccessRequest(user, verb, "*", "*", namespace=namespace)
    else:
        needed = _needed(user, verb, kind, namespace, name)
    await cluster.store.do(lambda store: check(store, needed))


def _needed(user: User, verb: str, kind: Kind, namespace: str, name: str) -> AccessRequest:
    if kind.name == "Namespace" and name:
        namespace = name
    return AccessRequest(user, verb, kind.group, kind.plural, "", namespace, name)
