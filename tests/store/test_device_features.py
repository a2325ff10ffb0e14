"""Tests of device fields that depend on the version of Kubernetes: stored and validated, or dropped."""

from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_34, V1_36, KubernetesVersion
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


def device(**fields: Any) -> dict[str, Any]:
    return slice_raw("n1", {"name": "d", **fields})


def ranged(default: str = "1Gi", **valid_range: str) -> dict[str, Any]:
    return sharing({"default": default, "validRange": {"min": "1Gi", **valid_range}})


DEVICE = "spec.devices[0]"
VALUES = f"{DEVICE}.capacity[memory].requestPolicy.validValues"
RANGE = f"{DEVICE}.capacity[memory].requestPolicy.validRange"
PLACES = "`nodeName`, `nodeSelector`"
PER_DEVICE = "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"


@pytest.mark.parametrize(
    ("raw", "faults"),
    [
        pytest.param(
            device(taints=[{"key": "k", "effect": "No"}]),
            [
                f'{DEVICE}.taints[0].effect: Unsupported value: "No": supported values: '
                '"NoExecute", "NoSchedule", "None"'
            ],
            id="effect",
        ),
        pytest.param(device(taints=[{"key": "k"}]), [f"{DEVICE}.taints[0].effect: Required value"], id="no-effect"),
        pytest.param(
            device(taints=[TAINT] * 17), [f"{DEVICE}.taints: Too many: 17: must have at most 16 items"], id="taints"
        ),
        pytest.param(
            device(bindingConditions=["a"]),
            [
                f"{DEVICE}.bindingFailureConditions: Invalid value: null: "
                "bindingFailureConditions are required to use bindingConditions"
            ],
            id="no-failure",
        ),
        pytest.param(
            device(bindingConditions=["a", "a"], bindingFailureConditions=["b", "a"]),
            [
                f'{DEVICE}.bindingConditions[1]: Duplicate value: "a"',
                f'{DEVICE}.bindingFailureConditions[1]: Invalid value: "a": '
                "bindingFailureConditions must not overlap with bindingConditions",
            ],
            id="conditions-twice",
        ),
        pytest.param(
            device(bindingConditions=list("abcde"), bindingFailureConditions=["f"]),
            [f"{DEVICE}.bindingConditions: Too many: 5: must have at most 4 items"],
            id="conditions",
        ),
        pytest.param(
            device(nodeName="n1"),
            [f"{DEVICE}: Invalid value: null: {PLACES} and `allNodes` can only be set if {PER_DEVICE}"],
            id="nodes-of-the-slice",
        ),
        pytest.param(
            slice_raw("s", {"name": "d", "nodeName": "n1", "allNodes": True}, perDeviceNodeSelection=True),
            [
                f'{DEVICE}: Invalid value: "{{`nodeName`, `allNodes`}}": exactly one of {PLACES}, or `allNodes` '
                f"is required when {PER_DEVICE}"
            ],
            id="two-places",
        ),
        pytest.param(
            device(consumesCounters=[{"counterSet": "s", "counters": {}}, {"counterSet": "s", "counters": {"A": {}}}]),
            [
                f"{DEVICE}.consumesCounters[0].counters: Required value",
                f'{DEVICE}.consumesCounters[1].counters[A]: Invalid value: "A": a lowercase RFC 1123 label',
                f'{DEVICE}.consumesCounters[1]: Duplicate value: "s"',
            ],
            id="counters",
        ),
        pytest.param(
            {**counting(), "spec": {**counting()["spec"], "devices": [{"name": "d"}]}},
            ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
            id="counters-and-devices",
        ),
        pytest.param(
            slice_raw("n1", *({"name": f"d{n}", "taints": [TAINT]} for n in range(65))),
            ["spec.devices: Too many: 65: must have at most 64 items"],
            id="devices-with-taints",
        ),
        pytest.param(
            sharing(STEPS, allowMultipleAllocations=False),
            [f"{DEVICE}.capacity[memory].requestPolicy: Forbidden: allowMultipleAllocations must be true"],
            id="not-shared",
        ),
        pytest.param(
            sharing({**STEPS, "validValues": ["1Gi"]}),
            [
                f"{DEVICE}.capacity[memory].requestPolicy: Forbidden: exactly one policy can be specified, "
                'cannot specify "validValues" and "validRange" at the same time'
            ],
            id="two-policies",
        ),
        pytest.param(
            sharing({"validValues": ["2Gi"]}),
            [f"{DEVICE}.capacity[memory].requestPolicy.default: Required value: required when validValues is defined"],
            id="no-default",
        ),
        pytest.param(
            sharing({"default": "3Gi", "validValues": ["4Gi", "2Gi", "9Gi"]}),
            [
                f'{VALUES}[1]: Invalid value: "2Gi": values must be sorted in ascending order',
                f'{VALUES}[2]: Invalid value: "9Gi": option is larger than capacity value: 8Gi',
                f'{VALUES}: Invalid value: "3Gi": default value is not valid according to the requestPolicy',
            ],
            id="values",
        ),
        pytest.param(
            sharing({"default": "1Gi", "validRange": {}}),
            [f"{RANGE}.min: Required value: required when validRange is defined"],
            id="no-min",
        ),
        pytest.param(
            ranged("5Gi", max="4Gi"), [f'{RANGE}.max: Invalid value: "5Gi": default is more than max: 4Gi'], id="above"
        ),
        pytest.param(
            ranged("512Mi"), [f'{RANGE}.min: Invalid value: "512Mi": default is less than min: 1Gi'], id="below"
        ),
        pytest.param(
            ranged(max="9Gi", step="3Gi"),
            [
                f'{RANGE}.max: Invalid value: "9Gi": max is larger than capacity value: 8Gi',
                f'{RANGE}.step: Invalid value: "9Gi": value is not a multiple of a given step (3Gi) from (1Gi)',
            ],
            id="max-and-step",
        ),
        pytest.param(
            ranged(step="8Gi"),
            [f'{RANGE}.step: Invalid value: "8Gi": one step 9Gi is larger than capacity value: 8Gi'],
            id="one-step",
        ),
        pytest.param(
            class_raw("gpu", extendedResourceName="cpu"), ["spec.extendedResourceName"], id="no-extended-resource"
        ),
    ],
)
def test_what_1_36_keeps_is_validated(raw: dict[str, Any], faults: list[str]) -> None:
    with pytest.raises(ApiError) as refused:
        store().create(raw)
    answer = str(refused.value)
    assert [fault for fault in faults if fault not in answer] == []


def test_a_fork_stands_for_the_same_version() -> None:
    fork = store().fork()
    made = fork.create(slice_raw("n1", {"name": "d", "taints": [TAINT]}))
    [taint] = made.raw["spec"]["devices"][0]["taints"]
    assert taint.items() >= TAINT.items()
