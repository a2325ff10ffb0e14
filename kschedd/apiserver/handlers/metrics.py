"""The group metrics.k8s.io: because no containers run, the usage of nodes and pods comes from annotations.

A pod's usage is given by its annotations `kschedd.io/cpu-usage` and `kschedd.io/memory-usage`, for all of its
containers together. A node's usage comes from its own annotations; the default is the sum of its pods' usage.
Discovery lists the group when some object has an annotation about usage.

Source: Kubernetes v1.34, staging/src/k8s.io/metrics. Raises: StatusError.
"""

from collections.abc import Generator, Mapping
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.quantity import QuantityError, format_milli, format_value, milli_value, value
from kschedd.api.text.times import stamp
from kschedd.apiserver.codec.negotiation import json_response
from kschedd.apiserver.codec.status import StatusError
from kschedd.apiserver.handlers.options import reading_request
from kschedd.apiserver.requests import ApiCall
from kschedd.apiserver.services import FaceServices
from kschedd.http.server import HttpResponse
from kschedd.store.cluster_api import ClusterReader

CPU: Final = "kschedd.io/cpu-usage"
MEMORY: Final = "kschedd.io/memory-usage"
_WINDOW: Final = "30s"
_LOOKED_AT: Final = 1000


async def usage_is_known(face: FaceServices) -> bool:
    """Return whether any node or pod has usage annotations."""
    present = await face.cluster.store.do(lambda store: [*store.present("Node"), *store.present("Pod")])

    def look() -> Generator[None, None, bool]:
        for space in present:
            for number, obj in enumerate(space):
                if _annotated(obj):
                    return True
                if number % _LOOKED_AT == 0:
                    yield
        return False

    return await face.shares.turns.drive("discovery", look())


def _annotated(obj: Object) -> bool:
    annotations = obj.metadata.get("annotations")
    return annotations is not None and (CPU in annotations or MEMORY in annotations)


def usage_of(obj: Object) -> tuple[int, int] | None:
    """Return the usage as (millicores, bytes) from the annotations; None if they are absent or invalid."""
    if not _annotated(obj):
        return None
    annotations = obj.annotations
    try:
        return milli_value(annotations.get(CPU, "0")), value(annotations.get(MEMORY, "0"))
    except QuantityError:
        return None


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


def _amounts(usage: tuple[int, int]) -> Mapping[str, str]:
    return {"cpu": format_milli(usage[0]), "memory": format_value(usage[1], "BinarySI")}


def _node(store: ClusterReader, node: Object, now: float) -> dict[str, Any] | None:
    usage = usage_of(node)
    if usage is None:
        own = [found for pod in store.pods_on(node.name) if (found := usage_of(pod)) is not None]
        usage = sum(cpu for cpu, _ in own), sum(memory for _, memory in own)
    return {"metadata": _meta(node, now), "timestamp": stamp(now), "window": _WINDOW, "usage": _amounts(usage)}


def _pod(pod: Object, now: float) -> dict[str, Any] | None:
    """Return the pod's metrics.

    The pod's usage is divided evenly among its containers; the first one gets the remainder.
    """
    usage = usage_of(pod)
    if usage is None:
        return None
    names = [str(each.get("name", "")) for each in pod.spec.get("containers") or ()] or [""]
    containers = []
    for place, name in enumerate(names):
        rest = [each - each // len(names) * (len(names) - 1) if place == 0 else each // len(names) for each in usage]
        containers.append({"name": name, "usage": _amounts((rest[0], rest[1]))})
    return {
        "metadata": _meta(pod, now),
        "timestamp": stamp(now),
        "window": _WINDOW,
        "containers": containers,
    }
