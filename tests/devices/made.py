"""Short constructors of slices, classes, claims and nodes for the tests of devices."""

from collections.abc import Mapping
from typing import Any

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse

DRIVER = "gpu.example.com"


def node(name: str, **labels: str) -> Node:
    return Node.from_raw({"kind": "Node", "metadata": {"name": name, "labels": labels}})


def device(name: str, *, memory: str = "", **attributes: Any) -> dict[str, Any]:
    raw: dict[str, Any] = {"name": name, "attributes": {key: _attribute(value) for key, value in attributes.items()}}
    if memory:
        raw["capacity"] = {"memory": {"value": memory}}
    return raw


def _attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": value}


def slice_raw(
    name: str,
    *devices: dict[str, Any],
    pool: str = "",
    driver: str = DRIVER,
    generation: int = 1,
    of: int = 1,
    **reach: Any,
) -> dict[str, Any]:
    """Return a ResourceSlice; by default it is local to the node of its name."""
    where = reach or {"nodeName": name}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {"name": pool or name, "generation": generation, "resourceSliceCount": of},
            "devices": list(devices),
            **where,
        },
    }


def slice_of(name: str, *devices: dict[str, Any], **more: Any) -> Object:
    return parse(slice_raw(name, *devices, **more))


def class_raw(name: str, *expressions: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector(e) for e in expressions], **spec},
    }


def selector(expression: str) -> dict[str, Any]:
    return {"cel": {"expression": expression}}


def exact(name: str, *expressions: str, device_class: str = "gpu", **fields: Any) -> dict[str, Any]:
    """Return a request for one device, unless `count` or `allocationMode` is given."""
    return {"name": name, "exactly": _wish(device_class, expressions, fields)}


def first_of(name: str, *alternatives: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "firstAvailable": list(alternatives)}


def subrequest(name: str, *expressions: str, device_class: str = "gpu", **fields: Any) -> dict[str, Any]:
    return {"name": name, **_wish(device_class, expressions, fields)}


def _wish(device_class: str, expressions: tuple[str, ...], fields: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"deviceClassName": device_class, **fields}
    if expressions:
        made["selectors"] = [selector(e) for e in expressions]
    return made


def claim_raw(name: str, *requests: dict[str, Any], status: Any = None, **devices: Any) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }
    if status is not None:
        raw["status"] = status
    return raw


def allocated(*names: str, on_node: str, reserved: tuple[str, ...] = (), pool: str = "") -> dict[str, Any]:
    """Return the status of a claim with these devices of a node, reserved for these pods."""
    results = [{"request": "r", "driver": DRIVER, "pool": pool or on_node, "device": name} for name in names]
    only = {"key": "metadata.name", "operator": "In", "values": [on_node]}
    return {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only]}]},
        },
        "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in reserved],
    }
