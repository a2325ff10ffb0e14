"""The controller of EndpointSlices that mirror users' Endpoints objects, for Services without a selector.

There is one slice for each combination of a set of ports and an address family. The Endpoints object owns its slices.
The slices are deleted if the object gets the label `endpointslice.kubernetes.io/skip-mirror`, or if the Service gets a
selector or is deleted. At most 1000 addresses for each set of ports are mirrored.

Owns nothing. Source: Kubernetes v1.37, pkg/controller/endpointslicemirroring.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.controllers.networking.backends import AddressType
from kschedd.controllers.networking.endpoints import ENDPOINTS_CONTROLLER, ENDPOINTS_MANAGED_BY
from kschedd.controllers.networking.slices import MANAGED_BY, SERVICE_NAME, TRIGGER_TIME, Ports, frozen_ports
from kschedd.controllers.running.controller import View
from kschedd.controllers.templates import controller_reference
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Create, Delete, Write, patch_of

_CONTROLLER: Final = "endpointslicemirroring-controller.k8s.io"
_SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MOST: Final = 1000
_Key = tuple[AddressType, Ports]
_Wanted = dict[_Key, dict[str, dict[str, Any]]]  # endpoints by address


class EndpointSliceMirroring:
    name: Final = "endpointslice-mirroring"
    kinds: Final = frozenset(("Service", "Endpoints", "EndpointSlice"))
    next_deadline: Final = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def concerns(self, event: WatchEvent) -> bool:
        new, old = event.new, event.old
        if new.kind == "Endpoints":
            return event.type != DELETED and new.labels.get(ENDPOINTS_MANAGED_BY) != ENDPOINTS_CONTROLLER
        if new.kind == "EndpointSlice":
            return new.labels.get(MANAGED_BY) == _CONTROLLER
        return not new.spec.get("selector") or (old is not None and not old.spec.get("selector"))

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        changed: dict[tuple[str, str], None] = {}
        for event in events:
            new = event.new
            name = new.labels.get(SERVICE_NAME, "") if new.kind == "EndpointSlice" else new.name
            changed[new.namespace, name] = None
        return self.faults.each("Endpoints", list(changed), partial(_mirror, view), now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes, because the event of the conflicting change triggers the next reconcile."""
        return []


def _mirror(view: View, namespace: str, name: str, now: float) -> list[Write]:
    endpoints = view.find("Endpoints", namespace, name)
    if endpoints is None or endpoints.deleting:
        return []  # the garbage collector deletes the slices
    owned = view.owned_by(endpoints.uid)
    existing = [each for each in owned if each.kind == "EndpointSlice" and each.labels.get(MANAGED_BY) == _CONTROLLER]
    wanted = _wanted(endpoints) if _is_mirrored(endpoints, view) else {}
    writes: list[Write] = []
    spare: list[Object] = []
    present: dict[_Key, Object] = {}
    for each in existing:
        key = (each.raw["addressType"], frozen_ports(each.raw.get("ports") or ()))
        if key in wanted and key not in present:
            present[key] = each
        else:
            spare.append(each)
    for (family, ports), by_address in wanted.items():
        slice_ = present.get((family, ports))
        if slice_ is None:
            slice_ = next((each for each in spare if each.raw["addressType"] == family), None)
            if slice_ is not None:
                spare.remove(slice_)
        writes += _written(endpoints, family, ports, list(by_address.values()), slice_)
    return writes + [Delete("EndpointSlice", each.namespace, each.name, each.uid) for each in spare]


def _is_mirrored(endpoints: Object, view: View) -> bool:
    if endpoints.labels.get(_SKIP) == "true" or _LEADER in endpoints.annotations:
        return False
    service = view.find("Service", endpoints.namespace, endpoints.name)
    return service is not None and not service.spec.get("selector")


def _wanted(endpoints: Object) -> _Wanted:
    """Return the endpoints that each slice must contain."""
    wanted: _Wanted = {}
    counts: dict[Ports, int] = {}
    for subset in endpoints.raw.get("subsets") or ():
        ports = frozen_ports(list(map(_port, subset.get("ports") or ())))
        listed = [(each, True) for each in subset.get("addresses") or ()]
        listed += [(each, False) for each in subset.get("notReadyAddresses") or ()]
        for address, ready in listed:
            if counts.get(ports, 0) < _MOST:
                counts[ports] = counts.get(ports, 0) + 1
                ip = ip_address(address["ip"])
                family: AddressType = "IPv4" if ip.version == 4 else "IPv6"
                wanted.setdefault((family, ports), {})[str(ip)] = _endpoint(address, str(ip), ready)
    return wanted


def _port(port: Mapping[str, Any]) -> dict[str, Any]:
    made = {"name": port.get("name") or "", "port": port["port"], "protocol": port.get("protocol") or "TCP"}
    return {**made, "appProtocol": port["appProtocol"]} if port.get("appProtocol") else made


def _endpoint(address: Mapping[str, Any], ip: str, ready: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"addresses": [ip], "conditions": {"ready": ready}}
    return made | {field: address[field] for field in ("hostname", "nodeName", "targetRef") if address.get(field)}


def _written(
    endpoints: Object, family: AddressType, ports: Ports, listed: list[dict[str, Any]], there: Object | None
) -> list[Write]:
    """Return the write that creates a slice or changes an existing slice; None if the slice is up to date."""
    labels = {**endpoints.labels, SERVICE_NAME: endpoints.name, MANAGED_BY: _CONTROLLER}
    annotations = {k: v for k, v in endpoints.annotations.items() if k not in (TRIGGER_TIME, _APPLIED)}
    content = {"ports": [dict(port) for port in ports], "endpoints": listed}
    if there is None:
        meta: dict[str, Any] = {"generateName": f"{endpoints.name}-", "namespace": endpoints.namespace}
        meta |= {"labels": labels, "annotations": annotations, "ownerReferences": [controller_reference(endpoints)]}
        head = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta}
        return [Create({**head, "addressType": family, **content})]
    same = frozen_ports(there.raw.get("ports") or ()) == ports and list(there.raw.get("endpoints") or ()) == listed
    if same and dict(there.labels) == labels and dict(there.annotations) == annotations:
        return []
    gone_labels = {name: None for name in there.labels if name not in labels}
    gone = {name: None for name in there.annotations if name not in annotations}
    changed = {"labels": {**gone_labels, **labels}, "annotations": {**gone, **annotations}}
    return [patch_of(there, {"metadata": changed, **content})]
