"""Fields of devices that a version of Kubernetes has or has not: kept and validated, or dropped."""

from typing import Any

import pytest

from kschedd.config.kube_versions import V1_34, V1_36, KubernetesVersion
from kschedd.store.errors import ApiError
from kschedd.store.store import Store
from tests.devices.made import claim_raw, class_raw, exact, slice_raw

TAINT = {"key": "k", "effect": "NoSchedule"}
CONDITIONS = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
STEPS = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi", "max": "4Gi"}}


def store(version: KubernetesVersion = V1_36) -> Store:
    made = Store(now=lambda: 0.0, rules=version.rules)
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    return made


def sharing(policy: Any, **device: Any) -> dict[str, Any]:
    capacity = {"memory": {"value": "8Gi", "requestPolicy": policy}}
    return slice_raw("n1", {"name": "d", "allowMultipleAllocations": True, "capacity": capacity, **device})


def counting(**spec: Any) -> dict[str, Any]:
    raw = slice_raw("n1", **spec)
    del raw["spec"]["devices"]
    raw["spec"]["sharedCounters"] = [{"name": "set", "counters": {"memory": {"value": "8Gi"}}}]
    return raw


OBJECTS = [
    pytest.param(slice_raw("n1", {"name": "d", "taints": [TAINT]}), id="taints"),
    pytest.param(slice_raw("n1", {"name": "d", "bindsToNode": True, **CONDITIONS}), id="binding-conditions"),
    pytest.param(sharing(STEPS), id="request-policy"),
    pytest.param(counting(), id="shared-counters"),
    pytest.param(class_raw("gpu", extendedResourceName="example.com/gpu"), id="extended-resource"),
    pytest.param(claim_raw("c", exact("r", capacity={"requests": {"memory": "1Gi"}})), id="capacity"),
]


@pytest.mark.parametrize("raw", OBJECTS)
def test_1_36_keeps_what_1_34_drops(raw: dict[str, Any]) -> None:
    kept, dropped = store().create(raw).raw["spec"], store(V1_34).create(raw).raw["spec"]
    assert kept != dropped
    for each in (
        "taints",
        "bindsToNode",
        "requestPolicy",
        "sharedCounters",
        "extendedResourceName",
        "'capacity': {'req",
    ):
        assert (each in str(kept)) is (each in str(raw["spec"]))
        assert each not in str(dropped)


def test_devices_may_say_their_nodes_themselves() -> None:
    raw = slice_raw("s", {"name": "d", "nodeName": "n1"}, perDeviceNodeSelection=True)
    assert store().create(raw).raw["spec"]["devices"][0]["nodeName"] == "n1"
    with pytest.raises(ApiError, match="exactly one of"):
        store(V1_34).create(raw)


def test_selectors_may_ask_whether_a_device_is_shared() -> None:
    raw = claim_raw("c", exact("r", "device.allowMultipleAllocations"))
    assert store().create(raw).name == "c"
    with pytest.raises(ApiError, match="undefined field"):
        store(V1_34).create(raw)


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        pytest.param(slice_raw("n1", {"name": "d", "taints": [{"key": "k", "effect": "No"}]}), "effect", id="effect"),
        pytest.param(slice_raw("n1", {"name": "d", "taints": [{"effect": "None"}]}), "taints.0..key", id="no-key"),
        pytest.param(
            slice_raw("n1", {"name": "d", "bindingConditions": ["a"]}), "bindingFailureConditions", id="no-failure"
        ),
        pytest.param(slice_raw("n1", {"name": "d", "nodeName": "n1"}), "perDeviceNodeSelection", id="two-places"),
        pytest.param(sharing(STEPS, allowMultipleAllocations=False), "allowMultipleAllocations", id="not-shared"),
        pytest.param(sharing({**STEPS, "default": "5Gi"}), "default", id="default-outside"),
        pytest.param(sharing({"default": "3Gi", "validValues": ["2Gi", "4Gi"]}), "default", id="default-not-valid"),
        pytest.param(sharing({"validValues": ["2Gi"]}), "default", id="no-default"),
        pytest.param(class_raw("gpu", extendedResourceName="cpu"), "extendedResourceName", id="no-extended-resource"),
    ],
)
def test_what_1_36_keeps_is_validated(raw: dict[str, Any], fault: str) -> None:
    with pytest.raises(ApiError, match=fault):
        store().create(raw)


def test_a_fork_stands_for_the_same_version() -> None:
    fork = store().fork()
    made = fork.create(slice_raw("n1", {"name": "d", "taints": [TAINT]}))
    assert made.raw["spec"]["devices"][0]["taints"] == [TAINT]
