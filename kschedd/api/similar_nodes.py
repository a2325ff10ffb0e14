"""Manifests of nodes that are similar to an existing node.

A similar node has the labels, taints and annotations that users set on the given node. Properties of the given node
itself or of its current state are omitted: addresses, images, the cordon, taints for its conditions, a stopped kubelet.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.nodes import HOSTNAME_LABEL
from kschedd.api.simulation.annotations import PREFIX, PRESSURE

Raw = Mapping[str, Any]
_OF_CONDITIONS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_OF_ONE_NODE: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "volumes.kubernetes.io/controller-managed-attach-detach",
    "node.alpha.kubernetes.io/ttl",
    PREFIX + "kubelet",
    PRESSURE,
)


def similar_node(raw: Raw, name: str) -> dict[str, Any]:
    """Return the manifest of a node with this name that is similar to the given node."""
    meta, spec, status = (raw.get(part) or {} for part in ("metadata", "spec", "status"))
    labels = {**(meta.get("labels") or {}), HOSTNAME_LABEL: name}
    annotations = {key: text for key, text in (meta.get("annotations") or {}).items() if key not in _OF_ONE_NODE}
    taints = [taint for taint in spec.get("taints") or () if not str(taint.get("key")).startswith(_OF_CONDITIONS)]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, **({"annotations": annotations} if annotations else {})},
        "spec": {"taints": taints} if taints else {},
        "status": {part: status[part] for part in ("capacity", "allocatable") if status.get(part)},
    }


def similar_csi_node(raw: Raw, name: str) -> dict[str, Any]:
    """Return the CSINode of a similar node."""
    drivers = [{**driver, "nodeID": name} for driver in (raw.get("spec") or {}).get("drivers") or ()]
    return {
        "apiVersion": raw["apiVersion"],
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": drivers},
    }


def similar_slice(raw: Raw, name: str) -> dict[str, Any]:
    """Return a ResourceSlice of a similar node, with the same devices in a separate pool."""
    own, spec = str((raw.get("metadata") or {}).get("name")), raw["spec"]
    like, pool = str(spec["nodeName"]), spec["pool"]
    return {
        "apiVersion": raw["apiVersion"],
        "kind": "ResourceSlice",
        "metadata": {"name": _named(own, like, name)},
        "spec": {**spec, "nodeName": name, "pool": {**pool, "name": _named(str(pool["name"]), like, name)}},
    }


def _named(text: str, like: str, name: str) -> str:
    """Return the name with the new node's name in place of the old one, or with the new name as prefix."""
    return text.replace(like, name, 1) if like in text else f"{name}-{text}"
