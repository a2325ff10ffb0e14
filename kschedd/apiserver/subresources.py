"""Subresources: status, scale, binding, eviction, log and what else a path may end in.

Source: Kubernetes v1.34, pkg/registry/core/pod/storage, pkg/registry/apps/*/storage, pkg/registry/core/pod/rest.
Raises: StatusError and the store's errors.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.fields import FieldError, invalid
from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.apiserver.bodies import read_body
from kschedd.apiserver.negotiation import json_response, text_response
from kschedd.apiserver.reading import find, get_object
from kschedd.apiserver.requests import CONNECTED, Asked, RequestInfo
from kschedd.apiserver.scaling import serve_scale
from kschedd.apiserver.services import FaceServices
from kschedd.apiserver.status import StatusError, bad_request, invalid_options, method_not_allowed, success
from kschedd.apiserver.writing import (
    DeleteOptions,
    check_options,
    on_behalf_of,
    options_of,
    patch,
    read_aside,
    received,
    update,
)
from kschedd.http.server import HttpResponse
from kschedd.store.binding import refuse_binding
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import Conflict
from kschedd.store.times import stamp

SIMULATED: Final = "this pod is simulated: no container runs, so there is no log of it\n"


async def serve_subresource(face: FaceServices, asked: Asked) -> HttpResponse:
    target = asked.target
    match target.subresource:
        case "status":
            return await _part(face, asked, "status")
        case "resize":
            return await _part(face, asked, "resize")
        case "scale":
            return await serve_scale(face, asked)
        case "binding":
            return await bind(face, asked)
        case "eviction":
            return await _evict(face, asked)
        case "log":
            return await _log(face, asked)
        case "ephemeralcontainers":
            return await _part(face, asked, "ephemeralcontainers")
        case "finalize":
            return await _part(face, asked, "finalize")
        case "token":
            return await _token(face, asked)
        case "approval":
            return await _part(face, asked, "approval")
    assert target.subresource in CONNECTED, f"{target.subresource} is listed, and served somewhere"
    return await _connect(face, asked)


async def _part(face: FaceServices, asked: Asked, part: Any) -> HttpResponse:
    verb = asked.target.verb
    if verb == "get":
        return await get_object(face, asked, await find(face, asked))
    return await (patch if verb == "patch" else update)(face, asked, part)


# Binding and eviction


def _named_as_path(asked: Asked, raw: Raw, kind: str) -> Mapping[str, Any]:
    """The metadata of a Binding or an Eviction, whose name and namespace must be those of the path."""
    meta = raw.get("metadata") or {}
    if not isinstance(meta, Mapping):
        raise bad_request(f"metadata of the {kind} is no mapping")
    if meta.get("namespace") and meta["namespace"] != asked.target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    named = meta.get("name")
    if asked.target.name and named != asked.target.name:
        raise bad_request(f"name in URL does not match name in {kind} object")
    return meta


async def bind(face: FaceServices, asked: Asked) -> HttpResponse:
    """Give a pod its node; of the path of the pod, or of the collection of bindings."""
    check_options(asked)
    raw = await received(face, asked, "v1", "Binding")
    meta = _named_as_path(asked, raw, "Binding")
    name, namespace = asked.target.name or str(meta.get("name") or ""), asked.target.namespace
    target = raw.get("target") or {}
    faults: list[FieldError] = []
    if target.get("kind") not in (None, "", "Node"):
        why = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        faults.append(FieldError("target.kind", target["kind"], why))
    if not target.get("name"):
        faults.append(FieldError("target.name", None, "Required value"))
    if faults:
        text = ", ".join(map(str, faults))
        raise StatusError(500, "", f"[{text}]" if len(faults) > 1 else text)
    uid, version = str(meta.get("uid") or ""), str(meta.get("resourceVersion") or "")

    def bound(store: ClusterWriter) -> None:
        pod = store.get("Pod", namespace, name)
        if uid and uid != pod.uid:
            raise _precondition(pod, f"UID in precondition: {uid}, UID in object meta: {pod.uid}")
        if version and version != str(pod.resource_version):
            there = pod.resource_version
            raise _precondition(
                pod, f"ResourceVersion in precondition: {version}, ResourceVersion in object meta: {there}"
            )
        if asked.dry_run:
            assert isinstance(pod, Pod), "that is what was asked for"
            refuse_binding(pod, str(target["name"]), uid)
            return
        store.bind(namespace, name, str(target["name"]), uid=uid)
        if meta.get("annotations"):
            store.merge_patch("Pod", namespace, name, {"metadata": {"annotations": dict(meta["annotations"])}})

    await face.cluster.store.do(on_behalf_of(asked, bound))
    return json_response(success(201), 201)


def _precondition(pod: Object, why: str) -> Conflict:
    return Conflict("Pod", pod.name, f"Precondition failed: {why}")


async def _evict(face: FaceServices, asked: Asked) -> HttpResponse:
    check_options(asked)
    media = asked.headers.get("content-type", "")
    body = await read_aside(face, asked, lambda: read_body(asked.http.body, media, "Eviction"))
    value = body.value if isinstance(body.value, dict) else {}
    version = "policy/v1beta1" if value.get("apiVersion") == "policy/v1beta1" else "policy/v1"
    raw = await received(face, asked, version, "Eviction", "policy")
    _named_as_path(asked, raw, "Eviction")
    target = asked.target
    options = options_of(raw.get("deleteOptions") or {})
    if asked.dry_run:
        options = attrs.evolve(options, dry_run=True)

    def evicted(store: ClusterWriter) -> None:
        if options.dry_run:
            trial = store.fork()
            _evict_from(trial, target, options)
        else:
            _evict_from(store, target, options)

    await face.cluster.store.do(on_behalf_of(asked, evicted))
    return json_response(success(201), 201)


def _evict_from(store: ClusterWriter, target: RequestInfo, options: DeleteOptions) -> None:
    store.evict(
        target.namespace,
        target.name,
        uid=options.uid,
        resource_version=options.resource_version,
        grace_period_s=options.grace_period_s,
    )


# What a kubelet would answer


def _container(asked: Asked, pod: Pod) -> str:
    """The container asked for. Raises StatusError where none is named and there are several, or it is not there."""
    names = [
        str(each.get("name", ""))
        for field in ("containers", "initContainers", "ephemeralContainers")
        for each in pod.spec.get(field) or ()
    ]
    wanted = asked.query.text("container")
    if wanted:
        if wanted not in names:
            raise bad_request(f"container {wanted} is not valid for pod {pod.name}")
        return wanted
    own = [str(each.get("name", "")) for each in pod.spec.get("containers") or ()]
    if len(own) == 1:
        return own[0]
    raise bad_request(f"a container name must be specified for pod {pod.name}, choose one of: [{' '.join(own)}]")


async def _log(face: FaceServices, asked: Asked) -> HttpResponse:
    pod = await find(face, asked)
    assert isinstance(pod, Pod), "only pods have a log"
    container = _container(asked, pod)
    if not pod.node_name:
        return HttpResponse(204, (("Cache-Control", "no-cache, private"),))
    if not face.kubelets:
        asked_for = "&".join(f"{name}={value}" for name, value in asked.query.items() if name != "container")
        path = f"containerLogs/{pod.namespace}/{pod.name}/{container}" + (f"?{asked_for}" if asked_for else "")
        why = f"dial tcp: lookup {pod.node_name}: no such host"
        raise StatusError(500, "", f'Get "https://{pod.node_name}:10250/{path}": {why}')
    return text_response(SIMULATED)


async def _connect(face: FaceServices, asked: Asked) -> HttpResponse:
    """exec, attach, portforward, proxy: there is nothing to connect to."""
    found = await find(face, asked)
    if isinstance(found, Pod) and asked.target.subresource in ("exec", "attach"):
        _container(asked, found)
        if not found.node_name:
            raise bad_request(f"pod {found.name} does not have a host assigned")
    raise StatusError(
        501,
        "NotImplemented",
        f"{asked.target.subresource} is not possible: the cluster is simulated, and no container runs",
    )


def _lifetime_fault(seconds: int) -> str:
    """What is wrong with the lifetime of a token; "" if nothing."""
    if seconds < 600:
        return "may not specify a duration less than 10 minutes"
    return "may not specify a duration larger than 2^32 seconds" if seconds > 1 << 32 else ""


async def _token(face: FaceServices, asked: Asked) -> HttpResponse:
    """A token of a ServiceAccount. It opens nothing here: whoever reaches this face may do everything."""
    account = await find(face, asked)
    raw = await received(face, asked, "authentication.k8s.io/v1", "TokenRequest", "authentication.k8s.io")
    spec = dict(raw.get("spec") or {})
    seconds = spec.get("expirationSeconds")
    if seconds is None:
        seconds = 3600
    if why := _lifetime_fault(seconds):
        fault = invalid("spec.expirationSeconds", seconds, why)
        raise invalid_options("TokenRequest", [fault], group="authentication.k8s.io")
    spec["expirationSeconds"] = seconds
    spec["audiences"] = spec.get("audiences") or ["https://kubernetes.default.svc"]
    spec.setdefault("boundObjectRef", None)
    token = face.tokens.issue(account.namespace, account.name, face.now() + seconds)
    kept = ("name", "namespace", "uid")
    meta = {
        **{field: account.metadata[field] for field in kept if field in account.metadata},
        "creationTimestamp": stamp(face.now()),
    }
    status = {"token": token, "expirationTimestamp": stamp(face.now() + seconds)}
    if asked.target.verb != "create":
        raise method_not_allowed()
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": meta,
        "spec": spec,
        "status": status,
    }
    return json_response(answer, 201)
