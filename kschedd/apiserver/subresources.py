"""Subresources: status, scale, binding, eviction, log and what else a path may end in.

Source: Kubernetes v1.34, pkg/registry/core/pod/storage, pkg/registry/apps/*/storage, pkg/registry/core/pod/rest.
Raises: StatusError and the store's errors.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kschedd.api.fields import FieldError, invalid
from kschedd.api.kinds import BY_NAME
from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.apiserver.bodies import Body, checked_kind, field_validation, media_type, read_body
from kschedd.apiserver.negotiation import json_response, text_response, wanted_form
from kschedd.apiserver.reading import get_object
from kschedd.apiserver.requests import CONNECTED, Asked, RequestInfo
from kschedd.apiserver.services import FaceServices
from kschedd.apiserver.status import StatusError, bad_request, causes, invalid_options, method_not_allowed, success
from kschedd.apiserver.tables import scale_table
from kschedd.apiserver.writing import (
    APPLY,
    DeleteOptions,
    check_options,
    manager_of,
    on_behalf_of,
    options_of,
    patch,
    placed,
    read_apply,
    read_patch,
    received,
    update,
    write,
)
from kschedd.http.server import HttpResponse
from kschedd.printing.columns_workloads import selector_text
from kschedd.registry.warnings import update_warnings
from kschedd.store.binding import refuse_binding
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import Conflict
from kschedd.store.patch_decoding import decode_patched
from kschedd.store.patching import patched
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
            return await _scale(face, asked)
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
            return await _part(face, asked, "status")
    assert target.subresource in CONNECTED, f"{target.subresource} is listed, and served somewhere"
    return await _connect(face, asked)


async def find(face: FaceServices, asked: Asked) -> Object:
    target = asked.target
    return await face.cluster.store.do(lambda store: store.get(target.resource.stored, target.namespace, target.name))


async def _part(face: FaceServices, asked: Asked, part: Any) -> HttpResponse:
    verb = asked.target.verb
    if verb == "get":
        return await get_object(face, asked, await find(face, asked))
    return await (patch if verb == "patch" else update)(face, asked, part)


# Scale


def scale_of(obj: Object) -> dict[str, Any]:
    """The Scale of a workload; of a custom resource, whose fields may have any type, what can be one."""
    meta = {
        field: obj.metadata[field]
        for field in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if field in obj.metadata
    }
    wanted, there = (_replicas(obj.raw.get(part)) for part in ("spec", "status"))
    status: dict[str, Any] = {"replicas": there}
    if obj.kind in BY_NAME and (selector := selector_text(obj.spec.get("selector"))) != "<none>":
        status["selector"] = selector
    shown = {"replicas": wanted} if wanted else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": shown, "status": status}


def _replicas(part: Any) -> int:
    found = part.get("replicas") if isinstance(part, Mapping) else None
    return found if type(found) is int else 0


async def _scale(face: FaceServices, asked: Asked) -> HttpResponse:
    target = asked.target
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    if target.verb == "get":
        scale = scale_of(await find(face, asked))
        if form.shape == "Table":
            return json_response(scale_table(scale, face.now(), form.version), form=form)
        return json_response(scale, form=form, request_headers=asked.headers)
    if media_type(asked.headers.get("content-type", "")) == APPLY:
        return await _apply_scale(face, asked)
    manager = manager_of(asked)
    if target.verb == "patch":
        patch_type, body = read_patch(asked)
        if patch_type == "strategic":
            patch_type = "merge"  # a Scale has no lists
    else:
        check_options(asked)
        given = await received(face, asked, "autoscaling/v1", "Scale", "autoscaling")
        if not (given.get("metadata") or {}).get("name"):
            why = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
            raise bad_request(why)

    def scaled(store: ClusterWriter) -> dict[str, Any]:
        old = store.get(target.resource.stored, target.namespace, target.name)
        if target.verb == "patch":
            scale = scale_of(old)
            whole = patched(scale, body.value, patch_type)
            wanted, told = decode_patched(
                scale, whole, body.value, patch_type, field_validation(asked.query), body.duplicates
            )
        else:
            wanted, told = given, ()
        meta = wanted.get("metadata") or {}
        if meta.get("name") and meta["name"] != target.name:
            raise bad_request(
                f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})"
            )
        version = meta.get("resourceVersion")
        if version and str(version) not in ("0", str(old.resource_version)):
            raise Conflict(old.kind, old.name)
        replicas = (wanted.get("spec") or {}).get("replicas") or 0
        if replicas < 0:
            raise _invalid_scale(target.name, replicas)
        changed = store.merge_patch(
            old.kind,
            old.namespace,
            old.name,
            {"spec": {"replicas": replicas}},
            subresource="scale",
            dry_run=asked.dry_run,
            manager=manager,
        )
        return {"object": scale_of(changed), "warnings": (*told, *update_warnings(old, changed))}

    return await _scaled(face, asked, scaled)


async def _apply_scale(face: FaceServices, asked: Asked) -> HttpResponse:
    """Server-side apply of a Scale: whoever applies one manages the workload's `spec.replicas`, by this subresource."""
    target = asked.target
    config, warnings = read_apply(asked)
    scale = checked_kind(Body(asked.http.body, config), "autoscaling/v1", "Scale", "autoscaling")
    config = placed(asked, scale, named=True)
    replicas = (config.get("spec") or {}).get("replicas")
    if replicas is not None and (not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0):
        raise _invalid_scale(target.name, replicas)
    asked.warnings.extend(warnings)

    def scaled(store: ClusterWriter) -> dict[str, Any]:
        old = store.get(target.resource.stored, target.namespace, target.name)
        changed, _ = store.server_side_apply(
            old.kind,
            old.namespace,
            old.name,
            {
                "apiVersion": old.raw["apiVersion"],
                "kind": old.raw["kind"],
                "metadata": {"name": old.name, "namespace": old.namespace},
                "spec": {} if replicas is None else {"replicas": replicas},
            },
            asked.query.text("fieldManager"),
            api_version=str(old.raw["apiVersion"]),
            force=asked.query.flag("force"),
            subresource="scale",
            dry_run=asked.dry_run,
        )
        return {"object": scale_of(changed), "warnings": update_warnings(old, changed)}

    return await _scaled(face, asked, scaled)


async def _scaled(face: FaceServices, asked: Asked, scaled: Callable[[ClusterWriter], dict[str, Any]]) -> HttpResponse:
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    answer = await write(face, asked, scaled)
    asked.warnings.extend(answer["warnings"])
    return json_response(answer["object"], form=form, request_headers=asked.headers)


def _invalid_scale(name: str, replicas: Any) -> StatusError:
    fault = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
    details = {"name": name, "group": "autoscaling", "kind": "Scale", "causes": causes((fault,))}
    return StatusError(422, "Invalid", f'Scale.autoscaling "{name}" is invalid: {fault}', details)


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
    body = read_body(asked.http.body, asked.headers.get("content-type", ""), "Eviction")
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
