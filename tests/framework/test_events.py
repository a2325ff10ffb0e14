"""Tests that events are derived and matched as upstream."""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, with_fields
from kschedd.api.pods import Pod
from kschedd.framework.events import (
    ASSIGNED_POD_ADD,
    EVERY_EVENT,
    FORCE_ACTIVATE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_UPDATE,
    ActionType,
    ClusterEvent,
    CustomResource,
    EventResource,
    hint_map,
    hints_of,
    matches,
    node_events,
    object_event,
    on,
    pod_events,
)

A = ActionType
R = EventResource


def event(resource: EventResource, action: ActionType) -> ClusterEvent:
    return ClusterEvent(resource, action)


@pytest.mark.parametrize(
    ("registered", "incoming", "matched"),
    [
        pytest.param(event(R.NODE, A.ADD), event(R.NODE, A.ADD), True, id="the-same-event"),
        pytest.param(
            event(R.NODE, A.ADD | A.UPDATE_NODE_LABEL), event(R.NODE, A.UPDATE_NODE_LABEL), True, id="one-of-several"
        ),
        pytest.param(
            event(R.NODE, A.UPDATE), event(R.NODE, A.UPDATE_NODE_TAINT), True, id="a-general-update-takes-narrow-ones"
        ),
        pytest.param(
            event(R.NODE, A.UPDATE_NODE_TAINT), event(R.NODE, A.UPDATE), False, id="a-narrow-one-not-the-general"
        ),
        pytest.param(
            event(R.NODE, A.ADD | A.UPDATE_POD_LABEL), event(R.NODE, A.UPDATE), False, id="actions-compare-as-numbers"
        ),
        pytest.param(event(R.NODE, A.ALL), event(R.PERSISTENT_VOLUME, A.ADD), False, id="another-resource"),
        pytest.param(event(R.POD, A.ADD), ASSIGNED_POD_ADD, True, id="pod-takes-assigned-pods"),
        pytest.param(event(R.POD, A.UPDATE), UNSCHEDULED_POD_UPDATE, True, id="pod-takes-unscheduled-pods"),
        pytest.param(ASSIGNED_POD_ADD, event(R.POD, A.ADD), False, id="assigned-pods-are-not-all-pods"),
        pytest.param(event(R.WILDCARD, A.ADD), NODE_ADD, True, id="any-resource"),
        pytest.param(event(R.WILDCARD, A.ALL), event(R.CSI_NODE, A.DELETE), True, id="the-wildcard-takes-everything"),
        pytest.param(
            event(R.NODE, A.ALL), UNSCHEDULABLE_TIMEOUT, False, id="an-incoming-wildcard-reaches-no-one-narrow"
        ),
    ],
)
def test_matching(registered: ClusterEvent, incoming: ClusterEvent, matched: bool) -> None:
    assert matches(registered, incoming) is matched


def test_bits_are_those_of_1_37() -> None:
    assert int(A.ALL) == 2**15 - 1
    assert A.UPDATE == A.ALL & ~A.ADD & ~A.DELETE
    assert int(A.UPDATE_POD_GENERATED_RESOURCE_CLAIM) == 2**14
    assert [int(action) for action in A] == [2**place for place in range(15)]


@pytest.mark.parametrize(
    ("cluster_event", "label"),
    [
        (NODE_ADD, "NodeAdd"),
        (event(R.NODE, A.UPDATE_NODE_TAINT), "NodeUpdateNodeTaint"),
        (UNSCHEDULED_POD_UPDATE, "UnschedulablePodUpdate"),
        (event(R.CSI_NODE, A.DELETE), "storage.k8s.io/CSINodeDelete"),
        (FORCE_ACTIVATE, "ForceActivate"),
    ],
)
def test_labels_are_upstreams(cluster_event: ClusterEvent, label: str) -> None:
    assert cluster_event.label == label


def node(**parts: Any) -> Node:
    raw: dict[str, Any] = {"kind": "Node", "metadata": {"name": "n", "labels": {"a": "1"}}}
    for section, fields in parts.items():
        raw = with_fields(raw, section, **fields)
    return Node.from_raw(raw)


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        pytest.param({}, {}, [], id="nothing-changed"),
        pytest.param({"spec": {"unschedulable": True}}, {}, ["NodeUpdateNodeTaint"], id="uncordoned"),
        pytest.param({}, {"spec": {"unschedulable": True}}, [], id="cordoned"),
        pytest.param(
            {"status": {"allocatable": {"cpu": "1"}}},
            {"status": {"allocatable": {"cpu": "2"}}},
            ["NodeUpdateNodeAllocatable"],
            id="allocatable",
        ),
        pytest.param(
            {"status": {"allocatable": {"cpu": "1"}}},
            {"status": {"allocatable": {"cpu": "1000m"}}},
            [],
            id="the-same-amount-written-differently",
        ),
        pytest.param({}, {"metadata": {"labels": {"a": "2"}}}, ["NodeUpdateNodeLabel"], id="labels"),
        pytest.param(
            {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True}},
            {"spec": {"taints": []}},
            ["NodeUpdateNodeTaint", "NodeUpdateNodeTaint"],
            id="uncordoned-and-taint-gone-are-two",
        ),
        pytest.param(
            {"spec": {"taints": [{"key": "k", "value": "", "effect": "NoSchedule"}]}},
            {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
            [],
            id="a-taint-without-value-has-the-empty-one",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "1"}]}},
            {"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2"}]}},
            [],
            id="a-heartbeat-is-nothing",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            ["NodeUpdateNodeCondition"],
            id="condition",
        ),
        pytest.param({}, {"metadata": {"annotations": {"x": "y"}}}, ["NodeUpdateNodeAnnotation"], id="annotation"),
        pytest.param(
            {"spec": {"unschedulable": True}},
            {"metadata": {"labels": {}, "annotations": {"x": "y"}}, "status": {"allocatable": {"cpu": 1}}},
            [
                "NodeUpdateNodeTaint",
                "NodeUpdateNodeAllocatable",
                "NodeUpdateNodeLabel",
                "NodeUpdateNodeAnnotation",
            ],
            id="several-in-upstreams-order",
        ),
    ],
)
def test_node_updates(old: dict[str, Any], new: dict[str, Any], labels: list[str]) -> None:
    assert [e.label for e in node_events(node(**old), node(**new))] == labels


def pod(**parts: Any) -> Pod:
    raw: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d", "uid": "u"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
    }
    for section, fields in parts.items():
        raw = with_fields(raw, section, **fields)
    return Pod.from_raw(raw)


def asking(**requests: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": requests}}]}


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        pytest.param({}, {}, ["UnschedulablePodUpdate"], id="no-narrower-event"),
        pytest.param({}, {"metadata": {"labels": {"a": "b"}}}, ["UnschedulablePodUpdatePodLabel"], id="labels"),
        pytest.param(
            {}, {"spec": asking(cpu="500m", memory="1Gi")}, ["UnschedulablePodUpdatePodScaleDown"], id="asks-less"
        ),
        pytest.param({}, {"spec": asking(cpu="1")}, ["UnschedulablePodUpdatePodScaleDown"], id="a-request-gone"),
        pytest.param({}, {"spec": asking(cpu="2", memory="1Gi")}, ["UnschedulablePodUpdate"], id="asks-more"),
        pytest.param(
            {"spec": {"schedulingGates": [{"name": "a"}]}},
            {},
            ["UnschedulablePodUpdatePodSchedulingGatesEliminated"],
            id="last-gate-gone",
        ),
        pytest.param(
            {"spec": {"schedulingGates": [{"name": "a"}, {"name": "b"}]}},
            {"spec": {"schedulingGates": [{"name": "a"}]}},
            ["UnschedulablePodUpdate"],
            id="a-gate-left",
        ),
        pytest.param(
            {},
            {"spec": {"tolerations": [{"operator": "Exists"}]}},
            ["UnschedulablePodUpdatePodToleration"],
            id="toleration-added",
        ),
        pytest.param(
            {},
            {"status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "b"}]}},
            ["UnschedulablePodUpdatePodGeneratedResourceClaim"],
            id="claim-generated",
        ),
        pytest.param(
            {},
            {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "a"}}},
            ["UnschedulablePodUpdatePodGeneratedResourceClaim"],
            id="claim-for-extended-resources-generated",
        ),
        pytest.param(
            {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "a"}}},
            {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "b"}}},
            ["UnschedulablePodUpdatePodGeneratedResourceClaim"],
            id="another-claim-for-extended-resources",
        ),
        pytest.param(
            {"spec": {"nodeName": "n"}},
            {"spec": {"nodeName": "n", **asking(cpu="1m")}, "metadata": {"labels": {"a": "b"}}},
            ["AssignedPodUpdatePodLabel", "AssignedPodUpdatePodScaleDown"],
            id="of-a-pod-with-a-node-in-upstreams-order",
        ),
    ],
)
def test_pod_updates(old: dict[str, Any], new: dict[str, Any], labels: list[str]) -> None:
    assert [e.label for e in pod_events(pod(**old), pod(**new))] == labels


def test_other_objects() -> None:
    claim = Object.from_raw({"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "d"}})
    other = Object.from_raw({"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "d"}})
    assert object_event(None, claim) == event(R.PERSISTENT_VOLUME_CLAIM, A.ADD)
    assert object_event(claim, claim) == event(R.PERSISTENT_VOLUME_CLAIM, A.UPDATE)
    assert object_event(claim, None) == event(R.PERSISTENT_VOLUME_CLAIM, A.DELETE)
    assert object_event(None, other) is None
    custom = Object.from_raw({"kind": "AssignedPod", "metadata": {"name": "c"}})
    assert object_event(None, custom) == ClusterEvent(CustomResource("AssignedPod"), A.ADD), "a kind like any other"


def test_waiting_for_new_nodes_is_waiting_for_taints_too() -> None:
    added = on(R.NODE, A.ADD | A.UPDATE_NODE_LABEL)
    tainted = on(R.NODE, A.ADD | A.UPDATE_NODE_TAINT)
    assert hints_of([added]) == (added, on(R.NODE, A.UPDATE_NODE_TAINT))
    assert hints_of([tainted]) == (tainted,)
    assert hints_of([added], taints_for_all=False) == (added,)
    assert hints_of([on(R.POD, A.ADD)]) == (on(R.POD, A.ADD),)


def test_a_plugin_that_registers_nothing_waits_for_everything() -> None:
    class Silent:
        name = "Silent"

    class Deaf:
        name = "Deaf"

        def events_to_register(self) -> list[Any]:
            return []

    assert hint_map([Silent(), Deaf()]) == {"Silent": EVERY_EVENT, "Deaf": ()}
