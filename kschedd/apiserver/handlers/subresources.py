"""Subresources: status, scale, binding, eviction, log and the other path suffixes.

Source: Kubernetes v1.34, pkg/registry/core/pod/storage, pkg/registry/apps/*/storage, pkg/registry/core/pod/rest.
Raises: StatusError, and the errors of the store.
"""

from typing import Any

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.schemas.fields import invalid
from kschedd.api.text.times import stamp
from kschedd.apiserver.codec.bodies import read_body
from kschedd.apiserver.codec.negotiation import json_response
from kschedd.apiserver.codec.status import StatusError, bad_request, invalid_options, method_not_allowed, success
from kschedd.apiserver.handlers.logs import container_of, serve_log
from kschedd.apiserver.handlers.reading import find, get_object
from kschedd.apiserver.handlers.scaling import serve_scale
from kschedd.apiserver.handlers.writing import (
    check_options,
    options_of,
    patch,
    read_aside,
    read_object,
    received,
    request_of,
    serve,
    update,
)
from kschedd.apiserver.requests import CONNECTED, ApiCall
from kschedd.apiserver.services import FaceServices
from kschedd.apiserver.tokens import API_AUDIENCES, reference
from kschedd.http.server import HttpResponse
from kschedd.service.operations.binding import named_as_path
from kschedd.store.cluster_api import ClusterReader


async def serve_subresource(face: FaceServices, call: ApiCall) -> HttpResponse:
    target = call.target
    match target.subresource:
        case "status":
            return await _part(face, call, "status")
        case "resize":
            return await _part(face, call, "resize")
        case "scale":
            return await serve_scale(face, call)
        case "binding":
            return await bind(face, call)
        case "eviction":
            return await _evict(face, call)
        case "log":
            return await serve_log(face, call)
        case "ephemeralcontainers":
            return await _part(face, call, "ephemeralcontainers")
        case "finalize":
            return await _part(face, call, "finalize")
        case "token":
            return await _token(face, call)
        case "approval":
            return await _part(face, call, "approval")
    assert target.subresource in CONNECTED, f"{target.subresource} is listed, and served somewhere"
    return await _connect(face, call)


async def _part(face: FaceServices, call: ApiCall, part: Any) -> HttpResponse:
    verb = call.target.verb
    if verb == "get":
        return await get_object(face, call, await find(face, call))
    return await (patch if verb == "patch" else update)(face, call, part)


# Binding and eviction


async def bind(face: FaceServices, call: ApiCall) -> HttpResponse:
    """Bind a pod to a node, through the path of the pod or the path of the collection of bindings."""
    check_options(call)
    raw, duplicates = await read_object(face, call, "v1", "Binding")
    await serve(face, call, request_of(call, "create", raw, "binding", duplicates))
    return json_response(success(201), 201)


async def _evict(face: FaceServices, call: ApiCall) -> HttpResponse:
    check_options(call)
    media = call.headers.get("content-type", "")
    body = await read_aside(face, call, lambda: read_body(call.http.body, media, "Eviction"))
    value = body.value if isinstance(body.value, dict) else {}
    version = "policy/v1beta1" if value.get("apiVersion") == "policy/v1beta1" else "policy/v1"
    raw = await received(face, call, version, "Eviction", "policy")
    options = options_of(raw.get("deleteOptions") or {})
    if call.dry_run:
        options = attrs.evolve(options, dry_run=True)
    request = request_of(call, "create", subresource="eviction", deletion=options)
    named_as_path(request, raw, "Eviction")
    await serve(face, call, request)
    return json_response(success(201), 201)


# Requests for a kubelet


async def _connect(face: FaceServices, call: ApiCall) -> HttpResponse:
    """Reject exec, attach, portforward and proxy, because there is nothing to connect to."""
    found = await find(face, call)
    if isinstance(found, Pod) and call.target.subresource in ("exec", "attach"):
        container_of(call, found)
        if not found.node_name:
            raise bad_request(f"pod {found.name} does not have a host assigned")
    raise StatusError(
        501,
        "NotImplemented",
        f"{call.target.subresource} is not possible: the cluster is simulated, and no container runs",
    )


def _lifetime_fault(seconds: int) -> str:
    """Return why the lifetime of a token is invalid; "" if it is valid."""
    if seconds < 600:
        return "may not specify a duration less than 10 minutes"
    return "may not specify a duration larger than 2^32 seconds" if seconds > 1 << 32 else ""


def _bound(store: ClusterReader, account: Object, ref: Raw | None) -> dict[str, Raw]:
    """Return the references in a token that is bound to an object, by claim. Raises NotFound, StatusError."""
    if not ref:
        return {}
    version, kind, name = (ref.get(field) or "" for field in ("apiVersion", "kind", "name"))
    if version != "v1" or kind not in ("Pod", "Secret", "Node"):
        group, _, version = version.rpartition("/")
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    found = store.get(kind, "" if kind == "Node" else account.namespace, name)
    claims = {kind.lower(): reference(found)}
    if isinstance(found, Pod):
        if found.raw["spec"].get("serviceAccountName") != account.name:
            raise bad_request(
                f'cannot bind token for serviceaccount "{account.name}" to pod running with different serviceaccount '
                "name."
            )
        node = store.find("Node", "", found.node_name) if found.node_name else None
        if node is not None:
            claims["node"] = reference(node)
        elif found.node_name:
            claims["node"] = {"name": found.node_name}
    uid = ref.get("uid") or ""
    if uid and uid != found.metadata.get("uid"):
        why = (
            f"the UID in the bound object reference ({uid}) does not match the UID in record. The object might have "
            "been deleted and then recreated"
        )
        message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
        raise StatusError(409, "Conflict", message, {"name": name, "kind": kind})
    return claims


async def _token(face: FaceServices, call: ApiCall) -> HttpResponse:
    """Issue a token for a ServiceAccount; a client with this token is the account's user."""
    account = await find(face, call)
    raw = await received(face, call, "authentication.k8s.io/v1", "TokenRequest", "authentication.k8s.io")
    spec = dict(raw.get("spec") or {})
    seconds = spec.get("expirationSeconds")
    if seconds is None:
        seconds = 3600
    if why := _lifetime_fault(seconds):
        fault = invalid("spec.expirationSeconds", seconds, why)
        raise invalid_options("TokenRequest", [fault], group="authentication.k8s.io")
    spec["expirationSeconds"] = seconds
    spec["audiences"] = spec.get("audiences") or list(API_AUDIENCES)
    spec.setdefault("boundObjectRef", None)
    bound = await face.cluster.store.do(lambda store: _bound(store, account, spec["boundObjectRef"]))
    token = face.tokens.issue(account, seconds, spec["audiences"], bound)
    kept = ("name", "namespace", "uid")
    meta = {
        **{field: account.metadata[field] for field in kept if field in account.metadata},
        "creationTimestamp": stamp(face.now()),
    }
    status = {"token": token, "expirationTimestamp": stamp(face.now() + seconds)}
    if call.target.verb != "create":
        raise method_not_allowed()
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": meta,
        "spec": spec,
        "status": status,
    }
    return json_response(answer, 201)
