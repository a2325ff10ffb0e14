"""Tests of pod changes by a resize; each row is a rule of upstream's ValidatePodResize."""

from typing import Any

import pytest

from kschedd.registry.pods.resize import POD_LEVEL, refuse_resize, validate_pod_resize
from tests.api.objects import Raw, container, pod

NO_FEATURES = frozenset[str]()
SMALL = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
CPU_ONLY = {"requests": {"cpu": "1"}}
MUTABLE = "spec: Forbidden: only cpu and memory resources are mutable"


def of(resources: Raw, **fields: Any) -> Raw:
    return pod(containers=[container(name="c", resources=resources, **fields)])


def with_init(resources: Raw, **fields: Any) -> Raw:
    init = container(name="i", resources=resources, **fields)
    return pod(initContainers=[init], containers=[container(name="c", resources=SMALL)])


def answer(old: Raw, new: Raw, features: frozenset[str] = NO_FEATURES) -> list[str]:
    return [str(fault) for fault in refuse_resize(old, new, features) or validate_pod_resize(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        pytest.param(of(SMALL), of(SMALL), [], id="nothing"),
        pytest.param(of(CPU_ONLY), of({"requests": {"cpu": "5"}}), [], id="more-cpu"),
        pytest.param(of({"requests": {"cpu": "1000m"}}), of(CPU_ONLY), [], id="the-same-otherwise-written"),
        pytest.param(
            of(SMALL), of({**SMALL, "limits": {"cpu": "2", "memory": "1Gi"}}), [], id="a-lower-limit-of-memory"
        ),
        pytest.param(of(CPU_ONLY), of({**CPU_ONLY, "limits": {"memory": "1Gi"}}), [], id="a-limit-where-none-was"),
        pytest.param(
            of(SMALL),
            of({**SMALL, "limits": {"cpu": "2"}}),
            ["spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"],
            id="a-limit-removed",
        ),
        pytest.param(
            of(SMALL),
            of({**SMALL, "requests": {"memory": "1Gi"}}),
            ["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
            id="a-request-removed",
        ),
        pytest.param(
            of(CPU_ONLY),
            of({}),
            [
                'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
                "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
            ],
            id="all-removed",
        ),
        pytest.param(
            of({"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}}),
            of({"requests": {"cpu": "2", "ephemeral-storage": "2Gi"}}),
            [MUTABLE],
            id="another-resource",
        ),
        pytest.param(
            of(CPU_ONLY, resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}]),
            of(CPU_ONLY, resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
            [MUTABLE],
            id="the-policy",
        ),
        pytest.param(
            of({**CPU_ONLY, "claims": [{"name": "gpu"}]}),
            of({"requests": {"cpu": "2"}, "claims": [{"name": "gpu"}]}),
            [MUTABLE],
            id="beside-a-claim",
        ),
        pytest.param(
            with_init(CPU_ONLY),
            with_init({"requests": {"cpu": "2"}}),
            ["spec: Forbidden: resources for non-sidecar init containers are immutable"],
            id="an-init-container",
        ),
        pytest.param(
            with_init(CPU_ONLY, restartPolicy="Always"),
            with_init({"requests": {"cpu": "2"}}, restartPolicy="Always"),
            [],
            id="a-sidecar",
        ),
        pytest.param(
            with_init(SMALL, restartPolicy="Always"),
            with_init({"limits": SMALL["limits"]}, restartPolicy="Always"),
            ["spec.initContainers[0].resources.requests: Forbidden: resource requests cannot be removed"],
            id="a-request-of-a-sidecar-removed",
        ),
        pytest.param(
            with_init({"requests": {"example.com/gpu": "1"}}, restartPolicy="Always"),
            with_init({"requests": {"example.com/gpu": "2"}}, restartPolicy="Always"),
            ["spec: Forbidden: only cpu and memory resources for sidecar containers are mutable"],
            id="another-resource-of-a-sidecar",
        ),
        pytest.param(
            pod(containers=[container(name="c"), container(name="d")]),
            pod(containers=[container(name="d"), container(name="c")]),
            [
                "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
                "spec.containers[1].name: Forbidden: containers may not be renamed or reordered on resize",
            ],
            id="another-order",
        ),
        pytest.param(
            of(CPU_ONLY),
            with_init(SMALL),
            ["spec.initContainers: Forbidden: initContainers may not be added or removed on resize"],
            id="one-more",
        ),
    ],
)
def test_only_what_containers_have_of_cpu_and_memory_may_change(old: Raw, new: Raw, faults: list[str]) -> None:
    assert answer(old, new) == faults


@pytest.mark.parametrize(
    ("spec", "annotations", "what"),
    [
        ({"os": {"name": "windows"}}, {}, "windows pods"),
        ({"resources": {"requests": {"cpu": "1"}}}, {}, "pods with pod-level resources"),
        ({"nodeName": "n1"}, {"kubernetes.io/config.mirror": "x"}, "static pods"),
    ],
)
def test_pods_that_cannot_be_resized(spec: Raw, annotations: Raw, what: str) -> None:
    old = pod(containers=[container(name="c", resources=SMALL)], **spec)
    old["metadata"]["annotations"] = annotations
    assert answer(old, old) == [f"[]: Forbidden: {what} cannot be resized"]


def test_pods_with_resources_of_their_own_are_resized_where_the_rule_holds() -> None:
    old = pod(containers=[container(name="c", resources=SMALL)], resources={"requests": {"cpu": "1"}})
    assert answer(old, old, frozenset((POD_LEVEL,))) == []


def test_a_node_that_does_not_say_what_containers_have_cannot_resize_them() -> None:
    stopped = {"name": "b", "state": {"waiting": {}}}
    silent = {"name": "c", "state": {"running": {}}}
    telling = {**silent, "resources": {}}
    why = "spec: Forbidden: Pod running on node without support for resize"
    for statuses, faults in (([silent], [why]), ([stopped, silent], [why]), ([stopped, telling, silent], [])):
        assert answer({**of(SMALL), "status": {"containerStatuses": statuses}}, of(SMALL)) == faults
