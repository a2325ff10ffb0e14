"""Tests with cases from pkg/kubelet/lifecycle/predicate_test.go and eviction_manager_test.go (Admit)."""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.controllers.kubelets.admission import NodeUsage, failures, is_critical, refusal_of, refused_by_system
from tests.controllers.kubelets.pods import node, pod

FOO_EXISTS = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "foo", "operator": "Exists"}]}]
        }
    }
}
STATIC = {"kubernetes.io/config.source": "file"}
NO_EXECUTE = [{"key": "bar", "effect": "NoExecute"}]
GPU = "example.com/aaa"
TAINTS_REASON = "node(s) had taints that the pod didn't tolerate"
AFFINITY_REASON = "node(s) didn't match Pod's node affinity/selector"


def usage(*pods: Pod) -> NodeUsage:
    used = NodeUsage()
    for each in pods:
        used.add(each.requests, each.pod_spec.host_ports)
    return used


def insufficient(resource: str, requested: int, used: int, capacity: int) -> str:
    numbers = f"requested: {requested}, used: {used}, capacity: {capacity}"
    return f"Node didn't have enough resource: {resource}, {numbers}"


@pytest.mark.parametrize(
    ("asking", "there", "on", "reasons"),
    [
        pytest.param(pod(), [pod("a", {"cpu": "9m", "memory": "19"})], node(), [], id="nothing-requested-always-fits"),
        pytest.param(
            pod(requests={"cpu": "8m", "memory": "10"}),
            [pod("a", {"cpu": "5m", "memory": "19"})],
            node(),
            [("OutOfcpu", insufficient("cpu", 8, 5, 10)), ("OutOfmemory", insufficient("memory", 10, 19, 20))],
            id="too-little-cpu-and-memory",
        ),
        pytest.param(
            pod(requests={"memory": "2"}),
            [pod("a", {"memory": "19"})],
            node(),
            [("OutOfmemory", insufficient("memory", 2, 19, 20))],
            id="too-little-memory",
        ),
        pytest.param(
            pod(requests={"cpu": "1m"}),
            [pod("a", {"cpu": "9m"})],
            node(),
            [],
            id="exactly-what-is-left",
        ),
        pytest.param(
            pod(),
            [pod("a"), pod("b")],
            node(pods="2"),
            [("OutOfpods", insufficient("pods", 1, 2, 2))],
            id="too-many-pods",
        ),
        pytest.param(
            pod(requests={"cpu": "20m"}),
            [pod("a")],
            node(pods="1"),
            [("OutOfpods", insufficient("pods", 1, 1, 1)), ("OutOfcpu", insufficient("cpu", 20, 0, 10))],
            id="the-number-of-pods-is-told-first",
        ),
        pytest.param(
            pod(requests={"ephemeral-storage": "6"}),
            [],
            node(ephemeral_storage="5"),
            [("OutOfephemeral-storage", insufficient("ephemeral-storage", 6, 0, 5))],
            id="too-little-storage",
        ),
        pytest.param(
            pod(requests={GPU: "2"}, limits={GPU: "2"}),
            [pod("a", {GPU: "3"})],
            node(**{"example.com/aaa": "4"}),
            [(f"OutOf{GPU}", insufficient(GPU, 2, 3, 4))],
            id="too-little-of-an-extended-resource",
        ),
        pytest.param(
            pod(requests={GPU: "1"}, limits={GPU: "1"}),
            [],
            node(**{"example.com/aaa": "0"}),
            [(f"OutOf{GPU}", insufficient(GPU, 1, 0, 0))],
            id="an-extended-resource-of-which-the-node-has-none-but-knows-it",
        ),
        pytest.param(
            pod(requests={GPU: "1"}, limits={GPU: "1"}),
            [],
            node(),
            [],
            id="an-extended-resource-that-the-node-does-not-know-is-the-clusters",
        ),
        pytest.param(
            pod(
                requests={"deviceclass.resource.kubernetes.io/aaa": "1"},
                limits={"deviceclass.resource.kubernetes.io/aaa": "1"},
            ),
            [],
            node(),
            [],
            id="a-resource-that-a-device-class-gives-is-not-the-nodes",
        ),
        pytest.param(
            pod(requests={"hugepages-2Mi": "4Mi"}),
            [],
            node(**{"hugepages-2Mi": "2Mi"}),
            [("OutOfhugepages-2Mi", insufficient("hugepages-2Mi", 4 << 20, 0, 2 << 20))],
            id="too-few-hugepages",
        ),
        pytest.param(
            pod(nodeName="machine2"),
            [],
            node(),
            [("NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name")],
            id="another-node-named",
        ),
        pytest.param(
            pod(ports=(123,)),
            [pod("a", ports=(123,))],
            node(),
            [("NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports")],
            id="host-port-taken",
        ),
        pytest.param(pod(ports=(123,)), [pod("a", ports=(124,))], node(), [], id="another-host-port"),
        pytest.param(
            pod(tolerations=[{"key": "foo", "operator": "Exists"}, {"key": "bar", "operator": "Exists"}]),
            [],
            node(taints=[{"key": "foo", "effect": "NoSchedule"}, {"key": "bar", "effect": "NoExecute"}]),
            [],
            id="taints-tolerated",
        ),
        pytest.param(
            pod(), [], node(taints=[{"key": "foo", "effect": "NoSchedule"}]), [], id="a-noschedule-taint-is-no-matter"
        ),
        pytest.param(
            pod(), [], node(taints=[{"key": "b", "effect": "PreferNoSchedule"}]), [], id="prefernoschedule-neither"
        ),
        pytest.param(
            pod(),
            [],
            node(taints=NO_EXECUTE),
            [("TaintToleration", f"Predicate TaintToleration failed: {TAINTS_REASON}")],
            id="a-noexecute-taint-not-tolerated",
        ),
        pytest.param(pod(annotations=STATIC), [], node(taints=NO_EXECUTE), [], id="static-pods-ignore-taints"),
        pytest.param(
            pod(annotations={"kubernetes.io/config.source": "api"}),
            [],
            node(taints=NO_EXECUTE),
            [("TaintToleration", f"Predicate TaintToleration failed: {TAINTS_REASON}")],
            id="a-pod-from-the-api-is-not-static",
        ),
        pytest.param(
            pod(annotations=STATIC, affinity=FOO_EXISTS),
            [],
            node(),
            [("NodeAffinity", f"Predicate NodeAffinity failed: {AFFINITY_REASON}")],
            id="static-pods-obey-affinity",
        ),
        pytest.param(pod(affinity=FOO_EXISTS), [], node(labels={"foo": "x"}), [], id="affinity-met"),
        pytest.param(
            pod(nodeSelector={"disk": "ssd"}),
            [],
            node(),
            [("NodeAffinity", f"Predicate NodeAffinity failed: {AFFINITY_REASON}")],
            id="node-selector-not-met",
        ),
        pytest.param(
            pod(requests={"cpu": "20m"}, ports=(80,), nodeName="other", nodeSelector={"a": "b"}),
            [pod("a", ports=(80,))],
            node(taints=NO_EXECUTE),
            [
                ("OutOfcpu", insufficient("cpu", 20, 0, 10)),
                ("NodeAffinity", f"Predicate NodeAffinity failed: {AFFINITY_REASON}"),
                ("NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name"),
                (
                    "NodePorts",
                    "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
                ),
                ("TaintToleration", f"Predicate TaintToleration failed: {TAINTS_REASON}"),
            ],
            id="all-at-once-in-upstreams-order",
        ),
    ],
)
def test_general_filter(asking: Pod, there: list[Pod], on: Node, reasons: list[tuple[str, str]]) -> None:
    found = failures(asking, on, usage(*there))
    assert [(each.reason, str(each)) for each in found] == reasons
    if found:
        first = refusal_of(found)
        assert (first.reason, first.message) == reasons[0]


TOLERATES_MEMORY = [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}]
TOLERATES_DISK = [{"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("asking", "pressures", "message"),
    [
        pytest.param({}, (), None, id="no-pressure"),
        pytest.param({}, ("MemoryPressure",), "The node had condition: [MemoryPressure]. ", id="best-effort"),
        pytest.param({"requests": {"cpu": "1m"}}, ("MemoryPressure",), None, id="burstable"),
        pytest.param({"tolerations": TOLERATES_MEMORY}, ("MemoryPressure",), None, id="best-effort-that-tolerates-it"),
        pytest.param(
            {"tolerations": TOLERATES_DISK},
            ("MemoryPressure",),
            "The node had condition: [MemoryPressure]. ",
            id="best-effort-that-tolerates-something-else",
        ),
        pytest.param({"priority": 2_000_000_000}, ("MemoryPressure",), None, id="critical"),
        pytest.param({"annotations": STATIC}, ("DiskPressure",), None, id="static"),
        pytest.param(
            {"requests": {"cpu": "1m"}},
            ("DiskPressure",),
            "The node had condition: [DiskPressure]. ",
            id="disk-pressure-keeps-everybody-away",
        ),
        pytest.param(
            {"requests": {"cpu": "1m"}},
            ("MemoryPressure", "PIDPressure"),
            "The node had condition: [MemoryPressure PIDPressure]. ",
            id="memory-and-pid-pressure",
        ),
    ],
)
def test_pressure_keeps_pods_away(asking: dict[str, Any], pressures: tuple[str, ...], message: str | None) -> None:
    refusal = refused_by_system(pod(**asking), node(pressures=pressures))
    assert (None if refusal is None else (refusal.reason, refusal.message)) == (message and ("Evicted", message))


@pytest.mark.parametrize(
    ("asking", "labels", "reason"),
    [
        pytest.param({"labels": {"kubernetes.io/os": "windows"}}, {}, "PodOSSelectorNodeLabelDoesNotMatch", id="label"),
        pytest.param({"os": {"name": "windows"}}, {}, "PodOSNotSupported", id="field"),
        pytest.param({"os": {"name": "linux"}}, {}, None, id="a-node-is-linux-unless-it-says-otherwise"),
        pytest.param({"os": {"name": "windows"}}, {"kubernetes.io/os": "windows"}, None, id="windows-on-windows"),
    ],
)
def test_another_operating_system_is_refused(asking: dict[str, Any], labels: dict[str, str], reason: str) -> None:
    refusal = refused_by_system(pod(**asking), node(labels=labels))
    assert (None if refusal is None else refusal.reason) == reason


@pytest.mark.parametrize(
    ("asking", "critical"),
    [
        ({"annotations": STATIC}, True),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, True),
        ({"annotations": {"kubernetes.io/config.source": "api"}}, False),
        ({"priority": 2_000_001_000}, True),
        ({"priority": 1_999_999_999}, False),
        ({}, False),
    ],
)
def test_which_pods_are_critical(asking: dict[str, Any], critical: bool) -> None:
    assert is_critical(pod(**asking)) is critical
