"""Tests of PodGroups of 1.37, which are queued, placed, rejected, preempting and preempted as a whole."""

import itertools
from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.clusters.virtual import VirtualCluster
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_37
from kschedd.metrics.catalogue import (
    INCOMING_ENTITIES,
    POD_GROUP_ALGORITHM_DURATION,
    POD_GROUP_ATTEMPT_DURATION,
    POD_GROUP_ATTEMPTS,
    PREEMPTION_EVALUATION,
    QUEUED_ENTITIES,
    WORKLOAD_DISRUPTIONS,
    WORKLOAD_PREEMPTIONS,
    WORKLOAD_VICTIMS,
)
from kschedd.queue.entry import Move, QueuedPod
from kschedd.queue.metrics import MoveMetrics, queue_metrics
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.gangs.counted import group_fault, try_counted
from kschedd.scheduling.inputs import BeginGroupCycle, PodsPopped
from kschedd.scheduling.nominations.nominator import Nominator
from kschedd.scheduling.profiles.metrics import SchedulingMetrics
from tests.scheduling.driven import NOW, Driven
from tests.scheduling.test_metrics import shown

Raw = dict[str, Any]
HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}},
}


def pod(name: str, group: str = "gang", **spec: Any) -> Raw:
    spec["containers"] = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def group(min_count: int, name: str = "gang", **spec: Any) -> Raw:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}, **spec},
    }


class Cluster:
    """A node of 2 CPUs."""

    def __init__(self, *objects: Raw) -> None:
        self.engine = VirtualCluster(default_config(version=V1_37, feature_gates={"GenericWorkload": True})).engine
        self.add(HIGH, NODE, *objects)

    def add(self, *objects: Raw) -> None:
        for raw in objects:
            self.engine.store.create(raw)
            self.engine.run_until_idle()
        self.engine.run_to_rest()

    def nodes(self) -> dict[str, str]:
        return {each.name: each.node_name for each in self.engine.store.list("Pod") if isinstance(each, Pod)}

    def place(self, name: str) -> str:
        entry = self.engine.queue.entry(f"default/{name}")
        return "" if entry is None else entry.place.value

    def condition(self) -> Raw:
        [one] = self.engine.store.get("PodGroup.scheduling.k8s.io", "default", "gang").status["conditions"]
        return dict(one)


def test_pods_wait_for_their_group_to_be_created() -> None:
    cluster = Cluster(pod("a"), pod("b"))
    assert cluster.place("a") == cluster.place("b") == "incomplete_group"
    cluster.add(group(2))
    assert cluster.nodes() == {"a": "n", "b": "n"}
    assert cluster.condition()["type"] == "PodGroupInitiallyScheduled"


def test_the_cycle_ends_as_soon_as_too_few_pods_are_left() -> None:
    cluster = Cluster(group(3), pod("a"), pod("b"), pod("c"))
    assert set(cluster.nodes().values()) == {""}
    assert cluster.condition()["message"].startswith("minCount (3) cannot be satisfied: 2 scheduled, 0 remaining")


def test_a_group_that_failed_is_tried_again_once_another_node_is_there() -> None:
    cluster = Cluster(group(3), pod("a"), pod("b"), pod("c"))
    assert cluster.nodes() == {"a": "", "b": "", "c": ""}
    cluster.add({**NODE, "metadata": {"name": "another"}})
    assert "" not in cluster.nodes().values()


def test_the_pods_of_a_group_are_tried_in_order_of_priority_and_then_of_attempts() -> None:
    run = Driven(version=V1_37, gates={"GenericWorkload": True})
    run.see(NODE, group(1))
    entries = []
    for name, priority, attempts in (("late", 0, 1), ("often", 0, 3), ("first", 5, 1)):
        raw = pod(name, priority=priority)
        raw["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
        run.see(raw)
        entries.append(run.entry(name))
        entries[-1].attempts = attempts
    run.driver.step(PodsPopped(entries))
    tried: list[str] = []
    head = run.driver.popped.take()
    assert head is not None
    drive(run.driver.step(BeginGroupCycle(head, lambda: NOW, lambda entry, result: tried.append(entry.pod.name))))
    assert tried == ["first", "often", "late"]


def test_a_group_is_one_entity_among_the_metrics_of_the_queue() -> None:
    cluster = Cluster(group(3), pod("a"), pod("b"))
    [queued] = [one for one in queue_metrics(cluster.engine.queue) if one.metric is QUEUED_ENTITIES]
    assert {labels: count for labels, count in queued.samples.items() if count} == {("gated", "podgroup"): 1}


def test_a_group_is_one_incoming_entity() -> None:
    cluster = Cluster()
    moves: list[Move] = []
    cluster.engine.queue.recorder = moves.append
    cluster.add(pod("a"), pod("b"), group(2))
    counted = MoveMetrics()
    counted.moved(moves)
    families = {family.metric: family.samples for family in counted.families()}
    assert families[INCOMING_ENTITIES] == {("active", "PodGroupAdd", "podgroup"): 1}


def test_it_needs_fewer_pods_once_its_min_count_is_less() -> None:
    cluster = Cluster(group(3), pod("a"), pod("b"))
    assert set(cluster.nodes().values()) == {""}
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    cluster.engine.store.merge_patch("PodGroup.scheduling.k8s.io", "default", "gang", {"spec": policy})
    cluster.engine.run_to_rest()
    assert cluster.nodes() == {"a": "n", "b": "n"}


def test_it_preempts_as_a_whole() -> None:
    cluster = Cluster(pod("low-1", ""), pod("low-2", ""))
    high = {"priorityClassName": "high"}
    cluster.add(group(2, **high), pod("a", **high), pod("b", **high))
    assert cluster.nodes() == {"a": "n", "b": "n"}


def test_it_preempts_for_as_many_of_its_pods_as_fit() -> None:
    cluster = Cluster(pod("low-1", ""), pod("low-2", ""))
    high = {"priorityClassName": "high"}
    for raw in (*(pod(name, **high) for name in "abc"), group(2, **high)):
        cluster.engine.store.create(raw)
    cluster.engine.run_to_rest()
    assert sorted(cluster.nodes().values()) == ["", "n", "n"]


@pytest.mark.parametrize(
    ("terminating", "message"),
    [
        pytest.param(False, "found a placement for podgroup, preempting 1 victims", id="they-run"),
        pytest.param(True, "ongoing preemption on nominated nodes", id="they-terminate-for-another-pod"),
    ],
)
def test_a_nominated_group_preempts_pods_on_its_node_unless_they_terminate(terminating: bool, message: str) -> None:
    cluster, high = Cluster(), {"priorityClassName": "high"}
    low = [pod(name, "") for name in ("low-1", "low-2")]
    for each in low:
        each["metadata"]["finalizers"] = ["example.com/stays"]
    cluster.add(*low, pod("a", **high))
    store = cluster.engine.store
    store.merge_patch("Pod", "default", "a", {"status": {"nominatedNodeName": "n"}}, subresource="status")
    if terminating:
        target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        store.merge_patch("Pod", "default", "low-1", {"status": {"conditions": [target]}}, subresource="status")
        store.delete("Pod", "default", "low-1")
    store.create(group(1, **high))
    cluster.engine.run_until_idle()
    assert cluster.condition()["message"].endswith(message)


def test_while_a_group_preempts_none_of_its_pods_waits_at_permit() -> None:
    cluster = Cluster(pod("low-1", ""), pod("low-2", ""))
    high = {"priorityClassName": "high"}
    for raw in (group(2, **high), pod("a", **high), pod("b", **high)):
        cluster.engine.store.create(raw)
    cluster.engine.run_until_idle()
    assert cluster.condition()["message"].endswith("found a placement for podgroup, preempting 2 victims")
    assert not cluster.engine.machine.waiting.pods


def test_the_message_of_a_group_for_which_no_preemption_helps() -> None:
    high = {"priorityClassName": "high"}
    few = "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    cluster = Cluster(group(3), pod("a"), pod("b"), pod("c"))
    nobody = "pod group preemption: No preemption victims found for incoming preemptor"
    assert cluster.condition()["message"] == f"{few}, {nobody}"
    cluster = Cluster(pod("low", ""), group(3, **high), *(pod(name, **high) for name in "abc"))
    claims = "deallocation and deletion of ResourceClaims completed"
    assert cluster.condition()["message"].endswith(f", {claims}, pod group preemption: {few}")
    assert cluster.nodes()["low"] == "n"


def test_a_group_whose_pods_pre_filter_rejects_fails_by_dynamic_resources() -> None:
    both = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in "xy"]
    terms = {"nodeSelectorTerms": [{"matchFields": both}]}
    nowhere = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    cluster = Cluster(group(2), pod("a", **nowhere), pod("b", **nowhere))
    condition = cluster.condition()
    assert condition["reason"] == "SchedulerError"
    assert condition["message"] == 'error in "DynamicResources" PodGroupPostFilter plugins: not found'


def test_a_filter_that_was_skipped_without_the_victims_stays_skipped_as_upstream() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster = Cluster(pod("low", "", affinity=alone))
    cluster.engine.store.merge_patch("Node", "", "n", {"metadata": {"labels": {"kubernetes.io/hostname": "n"}}})
    high = {"priorityClassName": "high"}
    for raw in (group(1, **high), pod("a", **high)):
        cluster.engine.store.create(raw)
    cluster.engine.run_until_idle()
    assert cluster.nodes() == {"low": "n", "a": ""}
    assert cluster.condition()["message"].endswith("found a placement for podgroup, preempting 0 victims")


def entry(name: str, **spec: Any) -> QueuedPod:
    raw = pod(name, **spec)
    raw["metadata"]["uid"] = name
    found = Pod.from_raw(raw)
    return QueuedPod(found, found.key, 0)


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        pytest.param([entry("a"), entry("b")], "", id="none"),
        pytest.param(
            [entry("a"), entry("b", schedulerName="other")],
            '.spec.schedulerName set, got: "other" and "default-scheduler"',
            id="two-schedulers",
        ),
        pytest.param(
            [entry("a", priority=3)], "priority as the pod group's priority, got 3 and 0", id="another-priority"
        ),
        pytest.param(
            [entry("a"), entry("b", preemptionPolicy="Never")],
            "preemption policy, got Never and PreemptLowerPriority",
            id="two-preemption-policies",
        ),
    ],
)
def test_why_pods_are_not_tried_as_one_group(entries: list[QueuedPod], why: str) -> None:
    machine = Cluster(group(1), pod("there")).engine.driver.machine
    text = f"all pods in a single pod group should have the same {why}" if why else ""
    assert group_fault(machine, "default/gang", entries) == text
    others = group_fault(machine, "default/gang", [entry("a", schedulerName="other")])
    assert others.endswith('got: "default-scheduler" and "other"'), "pods that are scheduled already count as well"
    assert group_fault(machine, "default/none", entries) == 'podgroup.scheduling.k8s.io "none" not found'


def tried(cluster: Cluster, names: str, nominator: Nominator, called: list[str] | None = None) -> dict[str, bool]:
    """Try pods of the group `gang`; return whether each tried pod fits. `called` gets the pods before which to stop."""
    paused: list[str] = [] if called is None else called

    def broken(entry: QueuedPod, fault: Exception) -> FitError:
        raise AssertionError("no attempt is expected to fail") from fault

    entries = [entry(name) for name in names]
    machine, noted = cluster.engine.machine, lambda entry, _: paused.append(entry.pod.name)
    found = drive(try_counted(machine, nominator, entries, 0.0, broken, noted))
    return {member.entry.pod.name: member.failed is None for member in found.members}


def test_a_cycle_may_stop_before_each_pod_except_the_first_and_ends_when_too_few_pods_are_left() -> None:
    called: list[str] = []
    assert tried(Cluster(group(4)), "abcd", Nominator(), called) == {"a": True, "b": True, "c": False}
    assert called == ["b", "c"]


def test_a_nomination_of_another_pod_of_the_group_does_not_count_in_its_cycle() -> None:
    cluster, nominator, other = Cluster(group(1), pod("there", "")), Nominator(), entry("b").pod
    nominator.add(other, "n")
    assert tried(cluster, "ab", nominator) == {"a": True, "b": False}
    assert nominator.node_of(other.uid) == "n"


def test_a_cycle_that_stopped_between_two_pods_goes_on_with_the_first_one_in_its_place() -> None:
    plain, stepped = Cluster(), Cluster()
    debugger = stepped.engine.driver.debugger
    debugger.next()
    stops = 0
    for cluster in (plain, stepped):
        for raw in (group(2), pod("a"), pod("b"), pod("c")):
            cluster.engine.store.create(raw)
        cluster.engine.run_until_idle()
    while debugger.stop is not None:
        stops += 1
        debugger.next()
        stepped.engine.run_until_idle()
    debugger.resume()
    for cluster in (plain, stepped):
        cluster.engine.run_to_rest()
    assert stops > 2
    assert plain.nodes() == stepped.nodes()
    assert sorted(plain.nodes().values()) == ["", "n", "n"]


def test_its_cycles_and_its_preemption_are_counted() -> None:
    cluster = Cluster()
    machine = cluster.engine.driver.machine
    ticks = itertools.count()
    machine.metrics = SchedulingMetrics(lambda: float(next(ticks)))
    machine.reconfigure(machine.config)
    whole = {"disruptionMode": {"all": {}}}
    cluster.add(group(2, "low", **whole), pod("low-1", "low"), pod("low-2", "low"))
    high = {"priorityClassName": "high"}
    cluster.add(group(2, **high), pod("a", **high), pod("b", **high))
    found = shown(cluster.engine.driver)
    profile = "default-scheduler"
    assert found[POD_GROUP_ATTEMPTS.name] == {("scheduled", profile): 2, ("waiting_on_preemption", profile): 1}
    durations = found[POD_GROUP_ATTEMPT_DURATION.name]
    assert {labels: number for labels, (number, _) in durations.items()} == found[POD_GROUP_ATTEMPTS.name]
    [(number, algorithm_s)] = found[POD_GROUP_ALGORITHM_DURATION.name].values()
    assert number == 3
    assert 3 <= algorithm_s < sum(seconds for _, seconds in durations.values())
    assert found[WORKLOAD_PREEMPTIONS.name] == {("Success",): 1}
    assert found[WORKLOAD_VICTIMS.name] == {(): (1, 2)}
    assert found[WORKLOAD_DISRUPTIONS.name] == {("podgroup",): (1, 1)}
    [(labels, (number, seconds))] = found[PREEMPTION_EVALUATION.name].items()
    assert (labels, number) == (("podgroup", "Success"), 1)
    assert 1 <= seconds < durations["waiting_on_preemption", profile][1]


def test_a_group_is_evicted_as_a_whole_if_its_disruption_mode_says_so() -> None:
    cluster = Cluster(group(2, disruptionMode={"all": {}}), pod("a"), pod("b"))
    cluster.add(pod("alone", "", priorityClassName="high"))
    assert cluster.nodes() == {"alone": "n"}
