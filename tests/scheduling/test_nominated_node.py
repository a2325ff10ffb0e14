"""Tests of a pod's nominated node, and of nodes to which other pods are nominated: messages and events."""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.debugger import Debugger
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.counted import NominatedPods
from kschedd.scheduling.nominations.nominator import Nominator
from tests.devices.made import claim_raw, class_raw, device, exact, slice_of


def node(name: str, cpu: str = "4", **spec: Any) -> Node:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
    meta = {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}}
    return Node.from_raw({"kind": "Node", "metadata": meta, "spec": spec, "status": status})


def pod(name: str, cpu: str = "1", *, nominated: str = "", priority: int = 0, **spec: Any) -> Pod:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    raw = {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": containers, "priority": priority, **spec},
        "status": {"nominatedNodeName": nominated} if nominated else {},
    }
    return Pod.from_raw(raw)


def machine(*objects: Object) -> SchedulingMachine:
    made = SchedulingMachine(default_config(version=V1_34), seed=1)
    made.cluster.load(objects)
    return made


def attempt(made: SchedulingMachine, wanted: Pod, *others: Pod) -> ScheduleResult | FitError:
    by_node: dict[str, list[Pod]] = {}
    for other in others:
        by_node.setdefault(other.nominated_node_name, []).append(other)
    result = drive(made.begin(wanted, by_node))
    assert isinstance(result, ScheduleResult | FitError)
    return result


def only(*names: str) -> dict[str, Any]:
    """Return an affinity whose PreFilter result is these node names."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


TAINT = {"taints": [{"key": "k", "effect": "NoSchedule"}]}


@pytest.mark.parametrize("times", [1, 3], ids=["at-first", "remembered"])
def test_who_rejects_the_nominated_node_is_named_of_the_nodes_nobody_asked_about(times: int) -> None:
    made = machine(node("n1", **TAINT), node("n2", "1"), node("n3"))
    for _ in range(times):
        failed = attempt(made, pod("p", "2", nominated="n1", affinity=only("n2")))
    assert isinstance(failed, FitError)
    assert failed.message.startswith(
        "0/3 nodes are available: 1 Insufficient cpu, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity TaintToleration], 1 node(s) had untolerated taint(s)."
    )
    assert failed.diagnosis.unschedulable_plugins == {"NodeAffinity", "NodeResourcesFit", "TaintToleration"}


def test_a_nominated_node_that_is_not_there_is_passed_over() -> None:
    failed = attempt(machine(node("n2", "1"), node("n3")), pod("p", "2", nominated="gone", affinity=only("n2")))
    assert isinstance(failed, FitError)
    assert "1 node(s) didn't satisfy plugin(s) [NodeAffinity]" in failed.message


def test_an_attempt_that_ends_in_an_error_names_who_rejected_the_nominated_node() -> None:
    """Reach the broken node in the search before the nominated one."""
    disk = {"name": "v", "azureDisk": {"diskName": "d", "diskURI": "u", "kind": "Shared"}}
    csi = parse({"kind": "CSINode", "metadata": {"name": "n1"}, "spec": {"drivers": []}})
    made = machine(node("n1"), node("n2", **TAINT), csi)
    failed = attempt(made, pod("p", nominated="n2", volumes=[disk]))
    assert isinstance(failed, FitError)
    assert "is not supported in csi migration" in failed.message
    assert failed.diagnosis.unschedulable_plugins == {"TaintToleration"}


@pytest.mark.parametrize("times", [1, 3], ids=["at-first", "remembered"])
def test_a_node_is_full_if_its_nominated_pods_need_it(times: int) -> None:
    made = machine(node("n1"), node("n2"))
    for number in range(times):
        placed = attempt(made, pod(f"p{number}"), pod("q", "4", nominated="n1"))
        assert isinstance(placed, ScheduleResult)
        assert (placed.node_name, len(placed.feasible)) == ("n2", 1)


def test_a_stopped_attempt_is_not_affected_by_nominations_that_change_meanwhile() -> None:
    """Stop the attempt of a pod that could preempt if no other pod were nominated to the node."""
    made = machine(node("n1"), pod("victim", "4", nodeName="n1"))
    nominator = Nominator()
    nominated, wanted, other = (
        pod("q", "4", nominated="n1", priority=10),
        pod("p", "4", priority=5),
        pod("r", "1", priority=5),
    )
    nominator.add(nominated)
    debugger = Debugger(dict)
    debugger.next()
    debugger.began(wanted)
    stepper = Stepper(debugger, wanted, 1, made.cluster.table, 1)
    work = made.schedulers["default-scheduler"].attempt(wanted, nominator.nominated, stepper=stepper)
    points, answers = [], None
    while True:
        try:
            request = work.send(answers)
        except StopIteration as end:
            result = end.value
            break
        assert isinstance(request, StopPoint)
        points.append(request.point)
        if points.count("postFilter") == 1:
            nominator.remove(nominated)
            assert not NominatedPods(made.cluster.table, other, nominator.nominated).everywhere  # as `explain` does
        debugger.next()
        answers = []
    assert isinstance(result, FitError)
    assert not result.nominated_node


def claims() -> list[Object]:
    used = claim_raw("k", exact("r"))
    used["status"] = {
        "allocation": {
            "devices": {"results": [{"request": "r", "driver": "gpu.example.com", "pool": "n2", "device": "d0"}]},
            "nodeSelector": {
                "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
            },
        }
    }
    return [parse(used), parse(class_raw("gpu")), slice_of("n2", device("d0"))]


@pytest.mark.parametrize(
    ("cpu_of_nominated", "answer"),
    [
        pytest.param("800m", "still not schedulable", id="the-nominated-pod-leaves-no-room"),
        pytest.param("100m", "deallocation of ResourceClaim completed", id="it-leaves-enough"),
    ],
)
@pytest.mark.parametrize("times", [1, 3], ids=["at-first", "remembered"])
def test_a_filter_behind_the_one_that_rejects_with_nominated_pods_is_not_asked(
    cpu_of_nominated: str, answer: str, times: int
) -> None:
    """Leave out the filter of DynamicResources, which releases a claim for which it has rejected a node."""
    made = machine(node("n1", "1"), node("n2", "100m"), *claims())
    other = pod("nominated", cpu_of_nominated, nominated="n1", priority=10)
    for _ in range(times):
        failed = attempt(made, pod("p", "500m", resourceClaims=[{"name": "k", "resourceClaimName": "k"}]), other)
    assert isinstance(failed, FitError)
    assert answer in failed.message


def test_scores_out_of_range_are_an_error_of_the_attempt() -> None:
    """Overflow a request to a negative number, so that a node seems emptier than empty."""
    containers = [
        {"name": "c", "image": "i", "resources": {"requests": {"memory": "9223372036854775807"}}},
        {"name": "d", "image": "i", "resources": {"requests": {"memory": "1Gi"}}},
    ]
    made = machine(node("n1"), node("n2"))
    failed = attempt(made, pod("p", containers=containers))
    assert isinstance(failed, FitError)
    assert failed.message == (
        'applying score defaultWeights on Score plugins: plugin "NodeResourcesBalancedAllocation" returns an invalid '
        "score -53687091093, it should in the range of [0, 100] after normalizing"
    )
