"""Tests of the placement of daemon pods: rules of NodeShouldRunDaemonPod and of a rolling update.

Source of the cases: Kubernetes v1.34, controller/daemon/daemon_controller_test.go (TestNodeShouldRunDaemonPod and the
tests of taints), update_test.go.
"""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.workloads.daemon_pods import (
    DaemonTemplate,
    Revision,
    UpdateLimits,
    daemon_pod,
    daemon_tolerations,
    replace_by_surge,
    replace_in_place,
    surplus_on_node,
    target_node,
)
from tests.store.manifests import workload

YES, NO, STAYS = (True, True), (False, False), (False, True)


def daemon_set(update: dict[str, Any] | None = None, **spec: Any) -> Object:
    raw = workload("DaemonSet", "agent")
    del raw["spec"]["replicas"]
    raw["metadata"]["uid"] = "uid"
    raw["spec"]["template"]["spec"].update(spec)
    if update is not None:
        raw["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": update}
    return Object.from_raw(raw)


def a_node(*taints: str, unschedulable: bool = False, **labels: str) -> Node:
    parsed = []
    for taint in taints:
        key, _, effect = taint.partition(":")
        name, _, value = key.partition("=")
        parsed.append({"key": name, "effect": effect, **({"value": value} if value else {})})
    raw = {
        "kind": "Node",
        "metadata": {"name": "test-node", "labels": labels},
        "spec": {"taints": parsed, **({"unschedulable": True} if unschedulable else {})},
    }
    return Node.from_raw(raw)


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    needed = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": needed}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(name: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


def tolerating(*tolerations: dict[str, Any]) -> dict[str, Any]:
    return {"tolerations": list(tolerations)}


GPU = {"key": "gpu", "operator": "Exists"}


@pytest.mark.parametrize(
    ("spec", "node", "expected"),
    [
        pytest.param({}, a_node(), YES, id="nothing-asked-for"),
        pytest.param({"nodeName": "other-node"}, a_node(), NO, id="the-template-names-another-node"),
        pytest.param({"nodeName": "test-node"}, a_node(), YES, id="the-template-names-this-node"),
        pytest.param(
            {"containers": [{"name": "a", "resources": {"requests": {"cpu": "900"}}}]},
            a_node(),
            YES,
            id="resources-are-the-schedulers-business",
        ),
        pytest.param(
            {"containers": [{"name": "a", "ports": [{"hostPort": 666, "containerPort": 1}]}]},
            a_node(),
            YES,
            id="and-so-are-host-ports",
        ),
        pytest.param({"nodeSelector": {"type": "test"}}, a_node(type="production"), NO, id="selector-does-not-match"),
        pytest.param({"nodeSelector": {"type": "test"}}, a_node(), NO, id="selector-and-no-labels"),
        pytest.param({"nodeSelector": {"type": "production"}}, a_node(type="production"), YES, id="selector-matches"),
        pytest.param(
            {"nodeSelector": {"type": "a", "zone": "b"}}, a_node(type="a", zone="c"), NO, id="half-of-the-selector"
        ),
        pytest.param(required(expression("type", "In", "test")), a_node(type="production"), NO, id="affinity-differs"),
        pytest.param(required(expression("type", "In", "production")), a_node(type="production"), YES, id="affinity"),
        pytest.param(
            required(expression("type", "In", "x"), expression("type", "Exists")),
            a_node(type="production"),
            YES,
            id="one-term-is-enough",
        ),
        pytest.param(required(expression("type", "NotIn", "test")), a_node(), YES, id="not-in-needs-no-label"),
        pytest.param(required(expression("cores", "Gt", "4")), a_node(cores="8"), YES, id="greater-than"),
        pytest.param(required(expression("cores", "Gt", "x")), a_node(cores="8"), NO, id="a-term-that-is-nonsense"),
        pytest.param(required(field("test-node")), a_node(), YES, id="field-names-this-node"),
        pytest.param(required(field("other")), a_node(), NO, id="field-names-another-node"),
        pytest.param(required({}), a_node(), NO, id="an-empty-term-matches-nothing"),
        pytest.param({}, a_node(unschedulable=True), YES, id="unschedulable-without-its-taint"),
        pytest.param({}, a_node("node.kubernetes.io/unschedulable:NoSchedule"), YES, id="cordoned"),
        pytest.param({}, a_node("node.kubernetes.io/not-ready:NoExecute"), YES, id="not-ready"),
        pytest.param({}, a_node("node.kubernetes.io/not-ready:NoSchedule"), STAYS, id="not-ready-no-schedule"),
        pytest.param({}, a_node("node.kubernetes.io/unreachable:NoExecute"), YES, id="unreachable"),
        pytest.param({}, a_node("node.kubernetes.io/unreachable:NoSchedule"), STAYS, id="unreachable-no-schedule"),
        pytest.param({}, a_node("node.kubernetes.io/disk-pressure:NoSchedule"), YES, id="disk-pressure"),
        pytest.param({}, a_node("node.kubernetes.io/memory-pressure:NoSchedule"), YES, id="memory-pressure"),
        pytest.param({}, a_node("node.kubernetes.io/pid-pressure:NoSchedule"), YES, id="pid-pressure"),
        pytest.param({}, a_node("node.kubernetes.io/network-unavailable:NoSchedule"), STAYS, id="no-network"),
        pytest.param(
            {"hostNetwork": True},
            a_node("node.kubernetes.io/network-unavailable:NoSchedule"),
            YES,
            id="no-network-needed",
        ),
        pytest.param({}, a_node("node.kubernetes.io/out-of-service:NoExecute"), NO, id="out-of-service"),
        pytest.param({}, a_node("gpu:NoSchedule"), STAYS, id="a-taint-keeps-new-ones-away"),
        pytest.param({}, a_node("gpu:NoExecute"), NO, id="a-taint-that-evicts"),
        pytest.param({}, a_node("gpu:PreferNoSchedule"), YES, id="a-preference"),
        pytest.param(tolerating(GPU), a_node("gpu:NoSchedule"), YES, id="tolerated"),
        pytest.param(tolerating(GPU), a_node("gpu=a100:NoExecute"), YES, id="tolerated-whatever-the-value"),
        pytest.param(
            tolerating({**GPU, "effect": "NoSchedule"}), a_node("gpu:NoExecute"), NO, id="tolerated-for-another-effect"
        ),
        pytest.param(
            tolerating({**GPU, "effect": "NoExecute"}),
            a_node("gpu:NoExecute", "gpu:NoSchedule"),
            STAYS,
            id="one-of-two-effects",
        ),
        pytest.param(
            tolerating({"key": "gpu", "operator": "Equal", "value": "t4"}),
            a_node("gpu=a100:NoSchedule"),
            STAYS,
            id="another-value",
        ),
        pytest.param(tolerating({"operator": "Exists"}), a_node("a:NoExecute", "b:NoSchedule"), YES, id="everything"),
        pytest.param(
            {"nodeSelector": {"type": "test"}, **tolerating({"operator": "Exists"})},
            a_node("a:NoSchedule"),
            NO,
            id="tolerations-do-not-help-where-labels-do-not-match",
        ),
    ],
)
def test_whether_a_daemon_pod_should_run_and_whether_it_should_stay(
    spec: dict[str, Any], node: Node, expected: tuple[bool, bool]
) -> None:
    assert DaemonTemplate.of(daemon_set(**spec)).should_run(node) == expected


def test_automatic_tolerations_have_no_seconds_and_replace_stated_ones_of_the_same_taint() -> None:
    stated = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    found = daemon_tolerations({"hostNetwork": True, "tolerations": [{**stated, "tolerationSeconds": 30}, GPU]})
    assert found[:2] == [stated, GPU]
    assert [(each["key"].rpartition("/")[2], each["effect"]) for each in found[2:]] == [
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
        ("network-unavailable", "NoSchedule"),
    ]


def test_a_daemon_pod_is_for_its_node_only() -> None:
    spec = required(expression("type", "In", "production"))
    spec["affinity"]["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": []}
    raw = daemon_pod(daemon_set(**spec), "node-7", "abc")
    needed = raw["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert needed == {"nodeSelectorTerms": [field("node-7")]}
    assert "podAffinity" in raw["spec"]["affinity"]
    assert raw["metadata"]["labels"] == {"app": "agent", "controller-revision-hash": "abc"}
    raw["metadata"].update(name="agent-x", uid="u")
    assert target_node(Pod.from_raw(raw)) == "node-7"


NOW = 1_000_000.0


def a_pod(name: str, revision: str = "new", *, ready: bool = True, age: int = 0, deleting: bool = False) -> Pod:
    meta: dict[str, Any] = {
        "name": name,
        "uid": name,
        "labels": {"controller-revision-hash": revision},
        "creationTimestamp": f"1970-01-01T00:00:{59 - age:02}Z",
    }
    if deleting:
        meta["deletionTimestamp"] = "1970-01-01T00:01:00Z"
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "lastTransitionTime": "1970-01-01T00:01:00Z",
    }
    return Pod.from_raw(
        {
            "kind": "Pod",
            "metadata": meta,
            "spec": {"containers": [], "nodeName": "n"},
            "status": {"phase": "Running", "conditions": [condition]},
        }
    )


NEWEST = Revision("new", "", 0, NOW)


@pytest.mark.parametrize(
    ("pods", "surges", "gone"),
    [
        pytest.param([a_pod("a")], False, [], id="one-is-right"),
        pytest.param([a_pod("a", age=1), a_pod("b", age=2)], False, ["a"], id="the-oldest-stays"),
        pytest.param([a_pod("a"), a_pod("b", "old")], True, ["b"], id="the-new-one-is-available"),
        pytest.param([a_pod("a", ready=False), a_pod("b", "old")], True, [], id="the-new-one-is-not-there-yet"),
        pytest.param([a_pod("a", ready=False), a_pod("b", "old", ready=False)], True, ["b"], id="neither-is-ready"),
        pytest.param(
            [a_pod("a", ready=False, age=1), a_pod("c", ready=False), a_pod("b", "old", age=2)],
            True,
            ["c"],
            id="two-new-ones",
        ),
    ],
)
def test_pods_that_are_too_many_on_a_node(pods: list[Pod], surges: bool, gone: list[str]) -> None:
    assert [pod.name for pod in surplus_on_node(pods, surges, NEWEST)] == gone


def on_nodes(*each: list[Pod]) -> dict[str, list[Pod]]:
    return {f"n{number}": pods for number, pods in enumerate(each)}


@pytest.mark.parametrize(
    ("nodes", "unavailable", "gone"),
    [
        pytest.param(on_nodes([a_pod("a", "old")], [a_pod("b", "old")]), 1, ["a"], id="one-at-a-time"),
        pytest.param(on_nodes([a_pod("a", "old")], [a_pod("b", "old")]), "100%", ["a", "b"], id="all-at-once"),
        pytest.param(on_nodes([a_pod("a", "old")], []), 1, [], id="a-node-without-a-pod-counts"),
        pytest.param(on_nodes([a_pod("a", "old")], [a_pod("b", ready=False)]), 1, [], id="so-does-a-new-unready-one"),
        pytest.param(
            on_nodes([a_pod("a", "old", ready=False)], [a_pod("b", "old")], []),
            1,
            ["a"],
            id="an-old-unavailable-one-goes-at-any-rate",
        ),
        pytest.param(on_nodes([a_pod("a")], [a_pod("b")]), 1, [], id="all-up-to-date"),
        pytest.param(
            on_nodes([a_pod("a", "old", deleting=True)], [a_pod("b", "old")]), 1, [], id="one-that-is-leaving-is-away"
        ),
        pytest.param(
            on_nodes([a_pod("a", "old"), a_pod("c", "old")], [a_pod("b", "old")]), 1, [], id="two-old-ones-on-a-node"
        ),
        pytest.param(on_nodes(*[[a_pod(str(n), "old")] for n in range(5)]), "30%", ["0", "1"], id="shares-round-up"),
    ],
)
def test_a_rolling_update_without_surge(nodes: dict[str, list[Pod]], unavailable: int | str, gone: list[str]) -> None:
    limits = UpdateLimits.of(daemon_set({"maxUnavailable": unavailable}), len(nodes))
    step = replace_in_place(nodes, NEWEST, limits)
    assert ([pod.name for pod in step.delete], step.create_on) == (gone, [])


@pytest.mark.parametrize(
    ("nodes", "surge", "gone", "created"),
    [
        pytest.param(on_nodes([a_pod("a", "old")], [a_pod("b", "old")]), 1, [], ["n0"], id="one-beside-an-old-one"),
        pytest.param(
            on_nodes([a_pod("a", "old"), a_pod("c", ready=False)], [a_pod("b", "old")]), 1, [], [], id="one-at-a-time"
        ),
        pytest.param(
            on_nodes([a_pod("a", "old"), a_pod("c")], [a_pod("b", "old")]), 1, ["a"], ["n1"], id="the-old-one-goes"
        ),
        pytest.param(
            on_nodes([a_pod("a", "old", ready=False)], [a_pod("b", "old")]),
            1,
            [],
            ["n0", "n1"],
            id="old-and-unavailable",
        ),
        pytest.param(
            on_nodes(*[[a_pod(str(n), "old")] for n in range(5)]), "30%", [], ["n0", "n1"], id="shares-round-up"
        ),
    ],
)
def test_a_rolling_update_with_surge(
    nodes: dict[str, list[Pod]], surge: int | str, gone: list[str], created: list[str]
) -> None:
    limits = UpdateLimits.of(daemon_set({"maxSurge": surge, "maxUnavailable": 0}), len(nodes))
    step = replace_by_surge(nodes, dict.fromkeys(nodes, True), NEWEST, limits, len(nodes))
    assert ([pod.name for pod in step.delete], step.create_on) == (gone, created)


def test_with_surge_a_pod_where_none_should_run_stays_until_enough_others_are_available() -> None:
    limits = UpdateLimits.of(daemon_set({"maxSurge": 1, "maxUnavailable": 0}), 1)
    runs = {"n0": False, "n1": True}
    waiting = on_nodes([a_pod("a", "old")], [a_pod("b", ready=False)])
    assert replace_by_surge(waiting, runs, NEWEST, limits, 1).delete == []
    there = on_nodes([a_pod("a", "old")], [a_pod("b")])
    assert [pod.name for pod in replace_by_surge(there, runs, NEWEST, limits, 1).delete] == ["a"]
