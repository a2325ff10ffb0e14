"""Tests of DynamicResources by the rules of 1.36: extended resources, binding conditions, scores."""

from typing import Any

import numpy as np
import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.feature_gates import defaults
from kschedd.config.versions.kube_versions import V1_36
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Code, Status
from kschedd.framework.writes import Create, Delete, MergePatch, Plan
from kschedd.plugins.devices.dynamicresources import DynamicResources
from kschedd.plugins.devices.dynamicresources_args import DynamicResourcesArgs
from tests.devices.made import DRIVER, allocated, claim_raw, class_raw, device, exact, first_of, slice_of, subrequest

GPU_CLASS = class_raw("gpu", f'device.driver == "{DRIVER}"', extendedResourceName="example.com/gpu")
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
NOW_S = 1_000_000.0


def node(name: str, **allocatable: str) -> Object:
    return parse({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}})


def pod(*claims: str, **requests: str) -> Pod:
    return Pod.from_raw(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "uid-p"},
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": requests}}],
                "resourceClaims": [{"name": name, "resourceClaimName": name} for name in claims],
            },
        }
    )


def asking(amount: str = "1", resource: str = "example.com/gpu") -> Pod:
    return pod(**{resource: amount})


class DeviceCluster:
    """Two nodes: n1 with two GPUs, n2 with the GPUs of a device plugin."""

    def __init__(self, *objects: Object) -> None:
        self.cluster = SchedulerCache()
        self.cluster.load([node("n1"), node("n2", **{"example.com/gpu": "4"}), parse(GPU_CLASS)])
        self.cluster.load([slice_of("n1", device("g0"), device("g1")), *objects])
        self.handle = Handle(self.cluster, defaults(V1_36.gates), rules=V1_36.rules, now_s=NOW_S)
        self.plugin = DynamicResources.from_args(DynamicResourcesArgs(), self.handle)

    def attempt(self, of: Pod) -> tuple[CycleState, list[Status | None]]:
        """Return the state of an attempt, and each node's status."""
        state = CycleState()
        answer = self.plugin.pre_filter(state, of, self.cluster)
        if answer is not None:
            return state, [answer]
        table = self.cluster.table
        nodes = [NodeInfo(table, table.row_of[name]) for name in ("n1", "n2")]
        return state, [self.plugin.filter(state, of, one) for one in nodes]

    def writes(self, state: CycleState, of: Pod, on: str = "n1") -> Plan:
        assert self.plugin.reserve(state, of, on) is None
        plan = self.plugin.pre_bind(state, of, on)
        assert isinstance(plan, Plan)
        return plan


def reasons(answer: list[Status | None]) -> list[str | None]:
    return [None if status is None else status.message for status in answer]


# -- extended resources ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "answer"),
    [
        pytest.param(asking("2"), [None, None], id="devices-or-a-device-plugin"),
        pytest.param(asking("3"), ["cannot allocate all claims", None], id="not-enough-devices"),
        pytest.param(
            asking(resource="deviceclass.resource.kubernetes.io/gpu"),
            [None, "cannot allocate all claims"],
            id="a-class-by-its-own-name",
        ),
    ],
)
def test_a_class_stands_behind_an_extended_resource(of: Pod, answer: list[str | None]) -> None:
    assert reasons(DeviceCluster().attempt(of)[1]) == answer


def test_resources_without_a_class_are_none_of_its_business() -> None:
    assert [status and status.code for status in DeviceCluster().attempt(asking(resource="example.com/nic"))[1]] == [
        Code.SKIP
    ]


@pytest.mark.parametrize(
    ("of", "repeats"),
    [
        pytest.param(pod(cpu="1"), True, id="no-devices"),
        pytest.param(pod("claim"), False, id="claims"),
        pytest.param(asking(), False, id="extended-resource-of-a-class"),
        pytest.param(asking(resource="deviceclass.resource.kubernetes.io/gpu"), False, id="a-class-by-name"),
        pytest.param(asking(resource="example.com/nic"), True, id="extended-resource-without-a-class"),
    ],
)
def test_attempts_repeat_for_pods_that_have_to_do_with_no_devices(of: Pod, repeats: bool) -> None:
    cluster = SchedulerCache()
    cluster.put(parse(GPU_CLASS))
    plugin = DynamicResources.from_args(DynamicResourcesArgs(), Handle(cluster, defaults(V1_36.gates), 0, V1_36.rules))
    assert ("binding" in plugin.idle_for(of)) is repeats
    assert bool(plugin.repeats_while_unchanged(of, cluster)) is repeats


def test_a_claim_is_created_allocated_and_told_of_before_binding() -> None:
    on = DeviceCluster()
    state, _ = on.attempt(asking("2"))
    create, of_claim, of_pod = on.writes(state, asking("2")).writes
    assert isinstance(create, Create)
    assert isinstance(of_claim, MergePatch)
    assert isinstance(of_pod, MergePatch)
    request = {"name": "container-0-request-0"}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    assert create.raw["spec"] == {"devices": {"requests": [{**request, "exactly": exactly}]}}
    assert create.raw["metadata"]["annotations"] == {ANNOTATION: "true"}
    assert not {"uid", "generateName"} & set(create.raw["metadata"]), "the API server chooses the uid"
    results = of_claim.patch["status"]["allocation"]["devices"]["results"]
    assert [result["device"] for result in results] == ["g0", "g1"]
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
    assert of_pod.patch["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": of_claim.name,
        "requestMappings": [mapping],
    }


def test_its_devices_are_gone_for_others_from_reserve_on() -> None:
    on = DeviceCluster()
    state, _ = on.attempt(asking("2"))
    on.plugin.reserve(state, asking("2"), "n1")
    raw = asking("1").raw
    other = Pod.from_raw({**raw, "metadata": {**raw["metadata"], "name": "q", "uid": "uid-q"}})
    assert reasons(on.attempt(other)[1]) == ["cannot allocate all claims", None]
    on.plugin.unreserve(state, asking("2"), "n1")
    assert reasons(on.attempt(other)[1]) == [None, None]


def test_where_a_device_plugin_provides_it_nothing_is_written() -> None:
    on = DeviceCluster()
    state, _ = on.attempt(asking("1"))
    assert on.plugin.reserve(state, asking("1"), "n2") is None
    assert on.plugin.pre_bind(state, asking("1"), "n2") is None


def test_a_claim_of_an_earlier_attempt_is_deleted_first() -> None:
    stale = claim_raw("stale", exact("container-0-request-0"))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    stale["metadata"] |= {"annotations": {ANNOTATION: "true"}, "ownerReferences": [owner]}
    on = DeviceCluster(parse(stale))
    state, answer = on.attempt(asking())
    assert reasons(answer) == ["cannot schedule extended resource claim"] * 2
    result = on.plugin.post_filter(state, asking(), on.cluster, None)
    assert result.status.message == "deletion of ResourceClaim completed"
    assert [(type(write), write.name) for write in result.writes] == [(Delete, "stale")]


def test_the_finalizer_of_a_claim_of_an_earlier_attempt_is_removed_with_the_claim() -> None:
    stale = claim_raw("stale", exact("container-0-request-0"))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    finalizers = ["example.com/other", "resource.kubernetes.io/delete-protection"]
    stale["metadata"] |= {"annotations": {ANNOTATION: "true"}, "ownerReferences": [owner], "finalizers": finalizers}
    on = DeviceCluster(parse(stale))
    state, _ = on.attempt(asking())
    result = on.plugin.post_filter(state, asking(), on.cluster, None)
    patch, delete = result.writes
    assert isinstance(patch, MergePatch)
    assert patch.patch["metadata"]["finalizers"] == ["example.com/other"]
    assert isinstance(delete, Delete)


def test_a_claim_for_extended_resources_is_deleted_and_not_deallocated() -> None:
    raw = claim_raw("emptied", status=allocated("g0", on_node="n3"))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    raw["metadata"] |= {"annotations": {ANNOTATION: "true"}, "ownerReferences": [owner]}
    on = DeviceCluster(parse(raw))
    state, answer = on.attempt(asking())
    assert reasons(answer)[0] == "resourceclaim not available on the node"
    result = on.plugin.post_filter(state, asking(), on.cluster, None)
    assert result.status.message == "deletion of ResourceClaim completed"
    assert [(type(write), write.name) for write in result.writes] == [(Delete, "emptied")]


def test_init_containers_use_the_devices_of_those_after_them() -> None:
    gpus = {"resources": {"requests": {"example.com/gpu": "1"}}}
    two = {"resources": {"requests": {"example.com/gpu": "2"}}}
    of = Pod.from_raw(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "uid-p"},
            "spec": {
                "initContainers": [{"name": "first", **gpus}, {"name": "second", **two}],
                "containers": [{"name": "c", **gpus}],
            },
        }
    )
    on = DeviceCluster()
    state, _ = on.attempt(of)
    create, _, of_pod = on.writes(state, of).writes
    assert isinstance(create, Create)
    assert isinstance(of_pod, MergePatch)
    requests = create.raw["spec"]["devices"]["requests"]
    assert [(one["name"], one["exactly"]["count"]) for one in requests] == [
        ("container-1-request-0", 1),
        ("container-2-request-0", 1),
    ]
    mappings = of_pod.patch["status"]["extendedResourceClaimStatus"]["requestMappings"]
    assert [(one["containerName"], one["requestName"]) for one in mappings] == [
        ("c", "container-2-request-0"),
        ("first", "container-2-request-0"),
        ("second", "container-2-request-0"),
        ("second", "container-1-request-0"),
    ]


# -- binding conditions ------------------------------------------------------------------------------------------------


def attached(*conditions: tuple[str, str], at: str = "1970-01-12T13:46:00Z") -> Object:
    """Return a claim that was allocated 40 s ago and whose device has these conditions."""
    status: dict[str, Any] = allocated("g0", on_node="n1")
    [result] = status["allocation"]["devices"]["results"]
    result |= {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    status["allocation"]["allocationTimestamp"] = at
    reported = [{"type": of_type, "status": state} for of_type, state in conditions]
    status["devices"] = [{"driver": DRIVER, "pool": "n1", "device": "g0", "conditions": reported}]
    return parse(claim_raw("c", exact("r"), status=status))


@pytest.mark.parametrize(
    ("claim", "answer"),
    [
        pytest.param(attached(("Attached", "True")), None, id="ready"),
        pytest.param(attached(), None, id="not-yet"),
        pytest.param(attached(("Broken", "True")), "resourceclaim not available on the node", id="failed"),
        pytest.param(attached(at="1970-01-01T00:00:00Z"), "resourceclaim not available on the node", id="late"),
        pytest.param(attached(("Attached", "True"), at="1970-01-01T00:00:00Z"), None, id="ready-and-old"),
    ],
)
def test_claims_whose_devices_failed_or_are_late_fit_nowhere(claim: Object, answer: str | None) -> None:
    on = DeviceCluster(claim)
    state, found = on.attempt(pod("c"))
    assert reasons(found)[0] == answer
    if answer is not None:
        result = on.plugin.post_filter(state, pod("c"), on.cluster, None)
        assert result.status.message == "deallocation of ResourceClaim completed"


def test_binding_waits_for_the_devices() -> None:
    on = DeviceCluster(attached())
    state, _ = on.attempt(pod("c"))
    plan = on.plugin.pre_bind(state, pod("c"), "n1")
    assert isinstance(plan, Plan)
    assert plan.ready is not None
    assert (plan.timeout_s, plan.timed_out) == (600, Status(Code.ERROR, ("device binding timeout",)))
    assert plan.ready(on.cluster) is None
    on.cluster.put(attached(("Attached", "True")))
    assert plan.ready(on.cluster) == Status(Code.SUCCESS)
    on.cluster.put(attached(("Broken", "True")))
    failed = plan.ready(on.cluster)
    assert failed is not None
    assert failed.message == 'claim c binding failed: reason=, message=""'
    on.cluster.put(attached())
    on.handle.now_s = NOW_S - 40 + 600
    assert plan.ready(on.cluster) is None, "600 s after the allocation it is not late yet"
    on.handle.now_s += 1
    late = plan.ready(on.cluster)
    assert late is not None
    assert late.message == "claim c binding timeout"


def test_a_new_allocation_says_when_it_was_made() -> None:
    on = DeviceCluster(parse(claim_raw("c", exact("r"))))
    state, _ = on.attempt(pod("c"))
    *_, status = on.writes(state, pod("c")).writes
    assert isinstance(status, MergePatch)
    assert status.patch["status"]["allocation"]["allocationTimestamp"] == "1970-01-12T13:46:40Z"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, "1970-01-12T13:46:40Z", id="it-did-not-say"),
        pytest.param("1970-01-01T00:00:00Z", None, id="it-did"),
    ],
)
def test_who_reserves_an_older_allocation_says_when_if_it_does_not(before: str | None, after: str | None) -> None:
    status = allocated("g0", on_node="n1")
    if before is not None:
        status["allocation"]["allocationTimestamp"] = before
    on = DeviceCluster(parse(claim_raw("c", exact("r"), status=status)))
    state, _ = on.attempt(pod("c"))
    [written] = on.writes(state, pod("c")).writes
    assert isinstance(written, MergePatch)
    assert written.patch["status"].get("allocation", {}).get("allocationTimestamp") == after


# -- scores ------------------------------------------------------------------------------------------------------------


def test_earlier_alternatives_score_more() -> None:
    model = f'device.attributes["{DRIVER}"].model == '
    wanted = first_of("r", subrequest("a", f'{model}"a"'), subrequest("b", f'{model}"b"'))
    on = DeviceCluster(
        parse(claim_raw("c", wanted)),
        slice_of("n1", device("g0", model="b")),
        slice_of("n2", device("g0", model="a")),
    )
    state, answer = on.attempt(pod("c"))
    assert reasons(answer) == [None, None]
    table = on.cluster.table
    rows = np.array([table.row_of["n1"], table.row_of["n2"]])
    raw = on.plugin.score_rows(state, pod("c"), table, rows)
    assert raw.tolist() == [7, 8]
    assert on.plugin.normalize(state, pod("c"), raw).tolist() == [87, 100]


def test_the_scores_of_all_claims_are_added() -> None:
    """Check requests with alternatives, plain requests, and claims that were allocated before the attempt."""
    two = first_of("r", subrequest("a", "false"), subrequest("b"))
    status: dict[str, Any] = allocated("g0", on_node="n1")
    of_plain: dict[str, Any] = allocated("g1", on_node="n1")
    results = status["allocation"]["devices"]["results"]
    results[0]["request"] = "r/b"
    results += [{**result, "request": "plain"} for result in of_plain["allocation"]["devices"]["results"]]
    on = DeviceCluster(
        parse(claim_raw("old", two, exact("plain"), status=status)),
        parse(claim_raw("unused", first_of("r", subrequest("a")), status={"allocation": {}})),
        parse(claim_raw("new", exact("plain"), first_of("r", subrequest("a")))),
        slice_of("n1", *(device(f"g{number}") for number in range(4))),
    )
    of = pod("old", "unused", "new")
    state, answer = on.attempt(of)
    assert reasons(answer)[0] is None
    table = on.cluster.table
    rows = np.array([table.row_of["n1"], table.row_of["n2"]])
    assert on.plugin.score_rows(state, of, table, rows).tolist() == [7 + 8, 0]
