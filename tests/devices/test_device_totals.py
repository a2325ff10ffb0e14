"""Devices behind extended resources, as the resource plugins count them."""

from typing import Any

import numpy as np
import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.scoring_args import ResourceWeight
from kschedd.config.versions.feature_gates import defaults
from kschedd.config.versions.kube_versions import V1_34, V1_36, KubernetesVersion
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, QUEUE_SKIP, EventResource
from kschedd.framework.handle import Handle
from kschedd.plugins.resources.noderesources_args import NodeResourcesFitArgs, ScoringStrategy
from kschedd.plugins.resources.noderesourcesfit import NodeResourcesFit
from tests.devices.made import DRIVER, allocated, claim_raw, class_raw, device, exact, slice_of

GPU = "example.com/gpu"
CLASS = parse(class_raw("gpu", f'device.driver == "{DRIVER}"', extendedResourceName=GPU))
STRATEGY = ScoringStrategy("MostAllocated", (ResourceWeight(GPU, 1),))


def node(name: str, **allocatable: str) -> Any:
    resources = {"cpu": "4", "pods": "10", **allocatable}
    return parse({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": resources}})


def pod(amount: str) -> Pod:
    container = {"name": "c", "resources": {"requests": {GPU: amount}}}
    return Pod.from_raw({"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [container]}})


def cluster() -> SchedulerCache:
    """n1 has four devices, one of them allocated; n2 a device plugin's two; n3 nothing."""
    made = SchedulerCache()
    made.load([node("n1"), node("n2", **{GPU: "2"}), node("n3"), CLASS])
    made.load([slice_of("n1", *(device(f"d{n}") for n in range(4)))])
    made.load([parse(claim_raw("c", exact("r"), status=allocated("d0", on_node="n1")))])
    return made


def fit(on: SchedulerCache, version: KubernetesVersion = V1_36) -> NodeResourcesFit:
    handle = Handle(on, defaults(version.gates), rules=version.rules)
    return NodeResourcesFit.from_args(NodeResourcesFitArgs(scoring_strategy=STRATEGY), handle)


@pytest.mark.parametrize(
    ("version", "amount", "passes"),
    [
        pytest.param(V1_36, "2", [True, True, True], id="nodes-without-a-device-plugin-are-left-to-devices"),
        pytest.param(V1_36, "3", [True, False, True], id="a-device-plugin-counts-where-it-is"),
        pytest.param(V1_34, "2", [False, True, False], id="before-1.36-device-plugins-alone"),
    ],
)
def test_fit_leaves_resources_of_a_class_to_devices(
    version: KubernetesVersion, amount: str, passes: list[bool]
) -> None:
    on = cluster()
    codes = fit(on, version).filter_rows(CycleState(), pod(amount), on.table, np.arange(3))
    assert [codes is None or not codes[row] for row in range(3)] == passes


def test_devices_are_capacity_and_allocated_ones_are_used() -> None:
    on = cluster()
    scores = fit(on).score_rows(CycleState(), pod("1"), on.table, np.arange(3))
    assert scores.tolist() == [50, 50, 0]


def test_what_is_cached_of_scores_ends_with_a_change_of_claims() -> None:
    on = cluster()
    plugin = fit(on)
    before = plugin.cache_key(on)
    on.put(parse(claim_raw("d", exact("r"), status=allocated("d1", on_node="n1"))))
    assert plugin.cache_key(on) != before
    assert plugin.score_rows(CycleState(), pod("1"), on.table, np.arange(1)).tolist() == [75]


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, CLASS, QUEUE, id="a-new-class"),
        pytest.param(CLASS, CLASS, QUEUE_SKIP, id="the-same-resource-as-before"),
        pytest.param(parse(class_raw("gpu")), CLASS, QUEUE, id="a-class-that-names-it-now"),
        pytest.param(None, parse(class_raw("nic")), QUEUE_SKIP, id="another-class"),
    ],
)
def test_a_class_wakes_pods_that_ask_for_its_resource(old: Any, new: Any, hint: Any) -> None:
    [after_class] = [
        one.hint for one in fit(cluster()).events_to_register() if one.event.resource == EventResource.DEVICE_CLASS
    ]
    assert after_class is not None
    assert after_class(pod("1"), old, new) == hint
