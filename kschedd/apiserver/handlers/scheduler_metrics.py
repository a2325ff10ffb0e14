"""The pages /metrics (kube-scheduler's metrics) and /metrics/resources (each pod's requests and limits).

Source: Kubernetes v1.34, scheduler/metrics/resources/resources.go; kube-state-metrics (kube_pod_overhead_…).
"""

from collections.abc import Generator, Iterable, Mapping
from typing import Final

from kschedd.api.objects import Object
from kschedd.apiserver.services import FaceServices
from kschedd.http.server import HttpResponse
from kschedd.metrics import catalogue
from kschedd.metrics.instruments import Labels, Metric, MetricFamily
from kschedd.printing.describing.node import limits_of, requests_of
from kschedd.service.daemon.metrics import scheduler_metrics, text_of

_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BYTES: Final = ("memory", "storage", "ephemeral-storage")
_MILLI: Final = 1000


async def metrics_page(face: FaceServices) -> HttpResponse:
    return _page(await text_of(await scheduler_metrics(face.cluster), process=True))


async def pod_resources_page(face: FaceServices) -> HttpResponse:
    present = await face.cluster.store.do(lambda store: store.present("Pod"))
    families = await face.shares.turns.drive("metrics", pod_resources(pod for space in present for pod in space))
    return _page(await text_of(families))


def _page(text: str) -> HttpResponse:
    return HttpResponse(200, (("Content-Type", _CONTENT_TYPE),), text.encode())


def pod_resources(pods: Iterable[Object]) -> Generator[None, None, list[MetricFamily]]:
    """Return the metric families of these pods; yield after each pod."""
    families: dict[Metric, dict[Labels, float]] = {
        metric: {}
        for metric in (
            catalogue.POD_REQUEST,
            catalogue.POD_LIMIT,
            catalogue.POD_CPU_OVERHEAD,
            catalogue.POD_MEMORY_OVERHEAD,
        )
    }
    for pod in pods:
        spec = pod.spec
        if not spec.get("nodeName") or pod.status.get("phase") not in ("Succeeded", "Failed"):
            for metric, amounts in (
                (catalogue.POD_REQUEST, requests_of(pod.raw)),
                (catalogue.POD_LIMIT, limits_of(pod.raw)),
            ):
                families[metric].update(_samples(pod, amounts))
        overhead = requests_of({"spec": {"overhead": spec.get("overhead") or {}}})
        for metric, resource in ((catalogue.POD_CPU_OVERHEAD, "cpu"), (catalogue.POD_MEMORY_OVERHEAD, "memory")):
            if resource in overhead:
                families[metric][pod.namespace, pod.name] = _units(resource, overhead[resource])
        yield
    return [MetricFamily(metric, samples) for metric, samples in families.items()]


def _samples(pod: Object, amounts: Mapping[str, int]) -> dict[Labels, float]:
    spec = pod.spec
    priority = spec.get("priority")
    of_pod = (
        pod.namespace,
        pod.name,
        spec.get("nodeName") or "",
        spec.get("schedulerName") or "",
        "" if priority is None else str(priority),
    )
    return {
        (*of_pod, resource, _unit_of(resource)): _units(resource, amount)
        for resource, amount in amounts.items()
        if amount
    }


def _unit_of(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def _units(resource: str, amount: int) -> float:
    return amount / _MILLI if resource == "cpu" else amount
