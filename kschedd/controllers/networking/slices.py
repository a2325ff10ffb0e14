"""The EndpointSlices of a Service: at most 100 endpoints each, with as few changes as possible.

Existing slices keep their endpoints. New endpoints first fill changed slices, then one unchanged slice that has room
for all of them, and then new slices. A Service without endpoints has one slice without ports.

Plain functions: they return the writes. Source: Kubernetes v1.37, endpointslice/reconciler.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.networking.backends import HEADLESS, AddressType, is_headless
from kschedd.controllers.templates import controller_reference
from kschedd.store.writes import Create, Delete, Write, patch_of

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
CONTROLLER: Final = "endpointslice-controller.k8s.io"
TRIGGER_TIME: Final = "endpoints.kubernetes.io/last-change-trigger-time"
MOST_ENDPOINTS: Final = 100
_RESERVED: Final = frozenset((SERVICE_NAME, MANAGED_BY, HEADLESS))

Endpoint = dict[str, Any]
Ports = tuple[tuple[tuple[str, Any], ...], ...]
"""The ports of a slice as a hashable value."""


@attrs.frozen(eq=False)
class Backend:
    """A pod of the Service, with its endpoint and the ports that it has."""

    pod: Pod
    endpoint: Endpoint
    ports: Ports


def frozen_ports(ports: Sequence[Mapping[str, Any]]) -> Ports:
    return tuple(sorted(tuple(sorted(port.items())) for port in ports))


def labels_of(service: Object) -> dict[str, str]:
    labels = {name: value for name, value in service.labels.items() if name not in _RESERVED}
    headless = {HEADLESS: ""} if is_headless(service) else {}
    return {**labels, **headless, SERVICE_NAME: service.name, MANAGED_BY: CONTROLLER}


def slice_writes(
    service: Object, family: AddressType, backends: Sequence[Backend], existing: Sequence[Object], trigger_time: str
) -> list[Write]:
    """Return the writes after which the slices of this family contain these backends."""
    plan = _Plan(service, family)
    by_ports: dict[Ports, dict[str, Backend]] = {}
    for backend in backends:
        by_ports.setdefault(backend.ports, {})[_identity(backend.endpoint)] = backend
    present: dict[Ports, list[Object]] = {}
    for each in existing:
        present.setdefault(frozen_ports(each.raw.get("ports") or ()), []).append(each)
    for ports, desired in by_ports.items():
        plan.place(ports, desired, present.get(ports, ()))
    plan.delete += [each for ports, listed in present.items() if ports not in by_ports for each in listed]
    if len(plan.delete) == len(existing) and not plan.create:
        plan.add_placeholder()
    return plan.writes(trigger_time)


class _Plan:
    """The changes of the slices of one family."""

    def __init__(self, service: Object, family: AddressType) -> None:
        self._service = service
        self._family = family
        self._labels = labels_of(service)
        self.create: list[tuple[Ports, list[Endpoint]]] = []
        self.update: dict[str, tuple[Object, Ports | None, list[Endpoint]]] = {}  # ports None: unchanged
        self.delete: list[Object] = []

    def place(self, ports: Ports, desired: dict[str, Backend], slices: Sequence[Object]) -> None:
        """Place the endpoints with the same ports."""
        unchanged: dict[str, Object] = {}
        for each in slices:
            before = each.raw.get("endpoints") or ()
            kept = [found.endpoint for old in before if (found := desired.pop(_identity(old), None)) is not None]
            if len(kept) != len(before) or any(map(_differ, kept, before)):
                if kept:
                    self.update[each.name] = (each, None, kept)
                else:
                    self.delete.append(each)
            elif dict(each.labels) != self._labels:
                self.update[each.name] = (each, None, kept)
            else:
                unchanged[each.name] = each
        left = [backend.endpoint for backend in desired.values()]
        changed = [self.update[each.name][2] for each in slices if each.name in self.update]
        for endpoints in sorted(changed, key=len, reverse=True):
            room = MOST_ENDPOINTS - len(endpoints)
            endpoints += left[:room]
            del left[:room]
        if left and len(left) < MOST_ENDPOINTS:
            fitting = [s for s in unchanged.values() if len(s.raw.get("endpoints") or ()) + len(left) <= MOST_ENDPOINTS]
            if fitting:
                fullest = max(fitting, key=lambda each: len(each.raw.get("endpoints") or ()))
                self.update[fullest.name] = (fullest, None, [*(fullest.raw.get("endpoints") or ()), *left])
                left = []
        while left:
            self.create.append((ports, left[:MOST_ENDPOINTS]))
            del left[:MOST_ENDPOINTS]

    def add_placeholder(self) -> None:
        """Add the slice of a Service without endpoints, unless it exists already."""
        if len(self.delete) == 1:
            (only,) = self.delete
            if not only.raw.get("endpoints") and not only.raw.get("ports") and dict(only.labels) == self._labels:
                self.delete = []
                return
        self.create.append(((), []))

    def writes(self, trigger_time: str) -> list[Write]:
        while self.create and self.delete:  # a slice is changed instead of deleted and created
            ports, endpoints = self.create.pop()
            gone = self.delete.pop(0)
            self.update[gone.name] = (gone, ports, endpoints)
        annotations = {TRIGGER_TIME: trigger_time or None}
        writes: list[Write] = []
        if not self._service.deleting:
            writes += [Create(self._new(ports, endpoints, trigger_time)) for ports, endpoints in self.create]
        for each, new_ports, endpoints in self.update.values():
            gone_labels = {name: None for name in each.labels if name not in self._labels}
            meta = {"labels": {**gone_labels, **self._labels}, "annotations": annotations}
            change: dict[str, Any] = {"metadata": meta, "endpoints": endpoints}
            if new_ports is not None:
                change["ports"] = _thawed(new_ports)
            writes.append(patch_of(each, change))
        writes += [Delete("EndpointSlice", each.namespace, each.name, each.uid) for each in self.delete]
        return writes

    def _new(self, ports: Ports, endpoints: list[Endpoint], trigger_time: str) -> dict[str, Any]:
        service = self._service
        meta: dict[str, Any] = {
            "generateName": f"{service.name}-",
            "namespace": service.namespace,
            "labels": self._labels,
            "ownerReferences": [controller_reference(service)],
        }
        if trigger_time:
            meta["annotations"] = {TRIGGER_TIME: trigger_time}
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": meta,
            "addressType": self._family,
            "endpoints": endpoints,
            "ports": _thawed(ports),
        }


def _thawed(ports: Ports) -> list[dict[str, Any]]:
    return [dict(port) for port in ports]


def _identity(endpoint: Mapping[str, Any]) -> str:
    """Return the identity of an endpoint: its addresses, hostname and pod."""
    target = endpoint.get("targetRef") or {}
    return f"{endpoint.get('addresses')} {endpoint.get('hostname')} {target.get('namespace')}/{target.get('name')}"


def _differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two endpoints with the same identity differ otherwise; hints are not compared."""
    fields = ("nodeName", "zone", "conditions", "targetRef")
    return any((one.get(field) or None) != (other.get(field) or None) for field in fields)
