"""The group metrics.k8s.io: because no containers run, usage comes from annotations, otherwise from requests.

Pods have metrics while they run. A node's usage comes from its own annotations `kschedd.io/cpu-usage` and
`kschedd.io/memory-usage`; the default is the sum of its pods' usage (`kschedd.api.simulation.usage`). Discovery lists
the group where pods are simulated.

Source: Kubernetes v1.34, staging/src/k8s.io/metrics. Raises: StatusError.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.quantity import format_milli, format_value
from kschedd.api.simulation.usage import Usage, container_usage, pod_usage, stated_usage
from kschedd.api.text.times import stamp
from kschedd.apiserver.codec.negotiation import json_response
from kschedd.apiserver.codec.status import StatusError
from kschedd.apiserver.handlers.options import reading_request
from kschedd.apiserver.requests import ApiCall
from kschedd.apiserver.services import FaceServices
from kschedd.http.server import HttpResponse
from kschedd.store.cluster_api import ClusterReader

_WINDOW: Final = "30s"


def _is_measured(pod: Object) -> bool:
    return isinstance(pod, Pod) and (pod.phase == "Running" or (not pod.finished and stated_usage(pod) is not None))


async def metrics_of(face: FaceServices, call: ApiCall) -> HttpResponse:
    target = call.target
    options = (await reading_request(face, call)).reading
    nodes = target.resource.name == "nodes"

    def read(store: ClusterReader) -> list[dict[str, Any]]:
        namespace = target.namespace or None if target.resource.namespaced else None
        found = store.list(target.resource.stored, namespace, options.labels, options.fields)
        wanted = [obj for obj in found if target.name in ("", obj.name)]
        shown = [_node(store, obj, face.now()) if nodes else _pod(obj, face.now()) for obj in wanted]
        return [each for each in shown if each is not None]

    found = await face.cluster.store.do(read)
    kind = target.resource.kind
    head = {"kind": kind, "apiVersion": "metrics.k8s.io/v1beta1"}
    if target.name:
        if not found:
            details = {"name": target.name, "group": "metrics.k8s.io", "kind": target.resource.name}
            raise StatusError(404, "NotFound", f'{target.resource.qualified} "{target.name}" not found', details)
        return json_response({**head, **found[0]})
    listed = {**head, "kind": f"{kind}List", "metadata": {}, "items": found}
    return json_response(listed, request_headers=call.headers)


def _meta(obj: Object, now: float) -> dict[str, Any]:
    kept = {field: obj.metadata[field] for field in ("name", "namespace", "labels") if field in obj.metadata}
    return {**kept, "creationTimestamp": stamp(now)}


def _amounts(usage: Usage) -> Mapping[str, str]:
    return {"cpu": format_milli(usage[0]), "memory": format_value(usage[1], "BinarySI")}


def _node(store: ClusterReader, node: Object, now: float) -> dict[str, Any]:
    usage = stated_usage(node)
    if usage is None:
        own = [pod_usage(pod) for pod in store.pods_on(node.name) if _is_measured(pod)]
        usage = sum(cpu for cpu, _ in own), sum(memory for _, memory in own)
    return {"metadata": _meta(node, now), "timestamp": stamp(now), "window": _WINDOW, "usage": _amounts(usage)}


def _pod(pod: Object, now: float) -> dict[str, Any] | None:
    """Return the pod's metrics; None if it does not run."""
    if not _is_measured(pod):
        return None
    return {
        "metadata": _meta(pod, now),
        "timestamp": stamp(now),
        "window": _WINDOW,
        "containers": [{"name": name, "usage": _amounts(usage)} for name, usage in container_usage(pod).items()],
    }
