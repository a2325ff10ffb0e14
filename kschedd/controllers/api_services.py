"""The Available condition of APIServices that other servers serve, as kube-apiserver's aggregator sets it.

The condition contains what is missing: the Service, its port, its EndpointSlices, or ready addresses in them. If
nothing is missing, the server's discovery check is reported as failed, because kschedd does not forward requests.
Source: Kubernetes v1.34, kube-aggregator/pkg/controllers/status/remote/remote_available_controller.go.

Owns nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.text.times import stamp
from kschedd.controllers.running.controller import View
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import WatchEvent
from kschedd.store.writes import Write, status_of

_SERVICE_NAME: Final = "kubernetes.io/service-name"


class APIServiceAvailability:
    name: Final = "apiservice-availability"
    kinds: Final = frozenset(("APIService", "Service", "EndpointSlice"))
    next_deadline: Final = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        remote = [("", each.name) for each in view.list("APIService") if each.spec.get("service")]
        return self.faults.each("APIService", remote, partial(_serve, view), now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes, because the event of the conflicting change triggers the next reconcile."""
        return []


def _serve(view: View, namespace: str, name: str, now: float) -> list[Write]:
    found = view.find("APIService", namespace, name)
    if found is None or not found.spec.get("service"):
        return []
    reason, message = _missing(view, found.spec)
    others: list[Any] = []
    before: Mapping[str, Any] | None = None
    for each in found.status.get("conditions") or ():
        if each.get("type") == "Available":
            before = each
        else:
            others.append(each)
    since = before.get("lastTransitionTime") if before and before.get("status") == "False" else None
    condition = {"type": "Available", "status": "False", "lastTransitionTime": since or stamp(now)}
    condition |= {"reason": reason, "message": message}
    return [] if before == condition else [status_of(found, {"conditions": [*others, condition]})]


def _missing(view: View, spec: Mapping[str, Any]) -> tuple[str, str]:
    """Return the reason and the message if the API is unavailable."""
    wanted = spec["service"]
    namespace, name, number = wanted.get("namespace") or "", wanted.get("name") or "", wanted.get("port")
    service = view.find("Service", namespace, name)
    if service is None:
        return "ServiceNotFound", f'service/{name} in "{namespace}" is not present'
    if (service.spec.get("type") or "ClusterIP") == "ClusterIP":
        port = next((each for each in service.spec.get("ports") or () if each.get("port") == number), None)
        if port is None:
            return "ServicePortError", f'service/{name} in "{namespace}" is not listening on port {number}'
        slices = [each for each in view.list("EndpointSlice", namespace) if each.labels.get(_SERVICE_NAME) == name]
        if not slices:
            return "EndpointsNotFound", f'cannot find endpointslices for service/{name} in "{namespace}"'
        port_name = port.get("name") or ""
        if port_name not in _ready_ports(slices):
            why = f'have no addresses with port name "{port_name}"'
            return "MissingEndpoints", f'endpointslices for service/{name} in "{namespace}" {why}'
    host = service.spec.get("externalName") or service.spec.get("clusterIP") or name
    url = f"https://{host}:{number}/apis/{spec.get('group')}/{spec.get('version')}"
    return "FailedDiscoveryCheck", f"failing or missing response from {url}: kschedd does not pass requests on"


def _ready_ports(slices: Sequence[Object]) -> Iterator[str]:
    """Yield the port names of slices with an endpoint that is ready, or whose readiness is unknown."""
    for each in slices:
        if any((found.get("conditions") or {}).get("ready") is not False for found in each.raw.get("endpoints") or ()):
            yield from (port.get("name") or "" for port in each.raw.get("ports") or ())
