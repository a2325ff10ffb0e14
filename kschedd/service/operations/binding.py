"""The binding subresource, which sets a pod's node and the annotations of the Binding.

Source: Kubernetes v1.34, pkg/registry/core/pod/storage/storage.go (BindingREST).
Raises: ApiError.
"""

from collections.abc import Mapping
from typing import Any

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.schemas.fields import FieldError
from kschedd.service.operations.writing import decoded
from kschedd.service.request import Request, Response
from kschedd.store.binding import refuse_binding
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import BadRequest, Conflict, Refused


def bind(store: ClusterWriter, request: Request, warnings: list[str]) -> Response:
    """Bind a pod. A request without a name is for the collection of bindings; its body then names the pod."""
    raw = decoded(store, request, warnings)
    meta = named_as_path(request, raw, "Binding")
    name, namespace = request.name or str(meta.get("name") or ""), request.namespace
    node = _target(raw.get("target") or {})
    pod = store.get("Pod", namespace, name)
    assert isinstance(pod, Pod), "objects of kind Pod are pods"
    uid, version = str(meta.get("uid") or ""), str(meta.get("resourceVersion") or "")
    if uid and uid != pod.uid:
        raise _precondition(pod, f"UID in precondition: {uid}, UID in object meta: {pod.uid}")
    if version and version != str(pod.resource_version):
        there = pod.resource_version
        raise _precondition(pod, f"ResourceVersion in precondition: {version}, ResourceVersion in object meta: {there}")
    if request.options.dry_run:
        refuse_binding(pod, node, uid)
        return Response(pod, pod)
    bound: Object = store.bind(namespace, name, node, uid=uid)
    if annotations := meta.get("annotations"):
        bound = store.merge_patch("Pod", namespace, name, {"metadata": {"annotations": dict(annotations)}})
    return Response(bound, pod)


def _target(target: Mapping[str, Any]) -> str:
    """Return the name of the node in the Binding. Raises Refused."""
    faults: list[FieldError] = []
    if target.get("kind") not in (None, "", "Node"):
        why = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        faults.append(FieldError("target.kind", target["kind"], why))
    if not target.get("name"):
        faults.append(FieldError("target.name", None, "Required value"))
    if faults:
        text = ", ".join(map(str, faults))
        raise Refused(f"[{text}]" if len(faults) > 1 else text)
    return str(target["name"])


def named_as_path(request: Request, raw: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return the metadata of a Binding or an Eviction; its name and namespace must equal those of the path."""
    meta = raw.get("metadata") or {}
    if not isinstance(meta, Mapping):
        raise BadRequest(kind, request.name, f"metadata of the {kind} is no mapping")
    if meta.get("namespace") and meta["namespace"] != request.namespace:
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise BadRequest(kind, request.name, why)
    if request.name and meta.get("name") != request.name:
        raise BadRequest(kind, request.name, f"name in URL does not match name in {kind} object")
    return meta


def _precondition(pod: Object, why: str) -> Conflict:
    return Conflict("Pod", pod.name, f"Precondition failed: {why}")
