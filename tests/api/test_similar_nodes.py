"""Tests of nodes created like another node: the fields that are copied, and those that are not."""

from typing import Any

import pytest

from kschedd.api.similar_nodes import similar_csi_node, similar_node, similar_slice

HOST = "kubernetes.io/hostname"
Raw = dict[str, Any]


def node(*, annotations: Raw | None = None, labels: Raw | None = None, spec: Raw | None = None) -> Raw:
    amounts = {"cpu": "4", "example.com/gpu": "2"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "uid": "u", "labels": labels or {}, "annotations": annotations or {}},
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": "x://a", **(spec or {})},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "Hostname", "address": "a"}],
            "conditions": [{"type": "Ready", "status": "False"}],
            "images": [{"names": ["i"], "sizeBytes": 1}],
        },
    }


OWN = {"key": "team", "value": "red", "effect": "NoSchedule"}
SICK = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
NEW = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("given", "part", "taken"),
    [
        pytest.param({}, "status", {"capacity": {"cpu": "4", "example.com/gpu": "2"}}, id="what-it-has"),
        pytest.param({"labels": {HOST: "a", "zone": "z"}}, "labels", {HOST: "b", "zone": "z"}, id="labels"),
        pytest.param({}, "labels", {HOST: "b"}, id="its-own-host-name"),
        pytest.param({"spec": {"taints": [OWN, SICK, NEW]}}, "spec", {"taints": [OWN]}, id="taints-somebody-chose"),
        pytest.param({"spec": {"unschedulable": True}}, "spec", {}, id="not-that-it-is-cordoned-nor-its-addresses"),
        pytest.param(
            {"annotations": {"kschedd.io/kubelet": "stopped", "kschedd.io/max-pids": "9"}},
            "annotations",
            {"kschedd.io/max-pids": "9"},
            id="not-that-its-kubelet-is-stopped",
        ),
    ],
)
def test_a_node_like_another(given: Raw, part: str, taken: Raw) -> None:
    made = similar_node(node(**given), "b")
    if part == "status":
        taken = {**taken, "allocatable": taken["capacity"]}
    assert (made["metadata"] if part in ("labels", "annotations") else made)[part] == taken
    assert made["metadata"]["name"] == "b"


def test_its_drivers_and_devices() -> None:
    driver = {"name": "disks", "nodeID": "a", "allocatable": {"count": 3}}
    made = similar_csi_node({"apiVersion": "storage.k8s.io/v1", "spec": {"drivers": [driver]}}, "b")
    assert (made["metadata"], made["spec"]["drivers"]) == ({"name": "b"}, [{**driver, "nodeID": "b"}])
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    spec = {"nodeName": "a", "driver": "gpu", "pool": {**pool, "name": "a"}, "devices": [{"name": "gpu-0"}]}
    raw = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": "gpu-a-x"}, "spec": spec}
    other = similar_slice(raw, "b")
    assert other["metadata"]["name"] == "gpu-b-x"
    assert other["spec"] == {**spec, "nodeName": "b", "pool": {**pool, "name": "b"}}
    shared = similar_slice({**raw, "spec": {**spec, "pool": pool}}, "b")
    assert shared["spec"]["pool"]["name"] == "b-pool"
