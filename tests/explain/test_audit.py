"""The auditor finds what hints miss, says who said what, keeps quiet otherwise, and changes nothing."""

from typing import Any, ClassVar

import attrs
import pytest

from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.config.versions.kube_versions import V1_34
from kschedd.explain.audit import Auditor
from kschedd.framework.events import (
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.registry import Registry
from kschedd.framework.status import Status, unschedulable
from kschedd.queue.entry import SubQueue
from kschedd.simulation.engine import Engine, LoggedAttempt

Raw = dict[str, Any]


def node(name: str, cpu: str = "2", **labels: str) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "10"}},
    }


def pod(name: str, cpu: str = "1", app: str = "a", **spec: Any) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}], **spec},
    }


def away_from(app: str) -> Raw:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


class Color:
    """Only nodes with the label color=red will do; its hint forgets that a node's labels may change."""

    name: ClassVar = "Color"

    def filter(self, state: Any, pod: Pod, node: Any) -> Status | None:
        return None if node.labels.get("color") == "red" else unschedulable("node is not red")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [
            on(EventResource.NODE, ActionType.ADD),
            on(EventResource.NODE, ActionType.UPDATE_NODE_LABEL, self.looked_the_other_way),
        ]

    def looked_the_other_way(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        return QUEUE_SKIP


class Doorman:
    """Lets nobody in at Permit."""

    name: ClassVar = "Doorman"

    def permit(self, state: Any, pod: Pod, node_name: str) -> Status:
        return unschedulable("not tonight")


def engine(*plugins: type[Any], **options: Any) -> Engine:
    registry = Registry()
    for plugin in plugins:
        registry.add(plugin, "a test")
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": plugin.name} for plugin in plugins]}}}],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()}, version=V1_34)
    return Engine(config, registry=registry, audit=True, **options)


def create(engine: Engine, *raws: Raw) -> None:
    for raw in raws:
        engine.store.create(raw)
        engine.run_until_idle()


def auditor(engine: Engine) -> Auditor:
    assert engine.auditor is not None
    return engine.auditor


def test_a_missed_wake_up_is_told_with_the_event_the_plugin_and_its_answer() -> None:
    run = engine(Color)
    create(run, node("n"), pod("p"))
    assert auditor(run).missed == []
    run.advance(run.now + 5)
    run.store.merge_patch("Node", "", "n", {"metadata": {"labels": {"color": "red"}}})
    run.run_until_idle()
    (missed,) = auditor(run).missed
    assert (missed.pod, missed.node, missed.rejected_by, missed.upstream_gap) == ("default/p", "n", ("Color",), "")
    last = missed.events[-1]
    assert (last.event, last.subject, last.answers) == ("NodeUpdateNodeLabel", "Node/n", (("Color", "QueueSkip"),))
    assert "NodeUpdateNodeLabel Node/n: Color: QueueSkip" in str(missed)
    assert missed.as_data()["events"][-1]["answers"] == {"Color": "QueueSkip"}


def test_it_is_told_once_for_each_sleep() -> None:
    run = engine(Color)
    create(run, node("n"), pod("p"))
    run.store.merge_patch("Node", "", "n", {"metadata": {"labels": {"color": "red"}}})
    run.run_until_idle()
    create(run, pod("q", cpu="9"))
    assert len(auditor(run).missed) == 1
    found = run.store.get("Pod", "default", "p")
    assert isinstance(found, Pod)
    run.queue.activate([found], run.now_ns)
    run.run_until_idle()
    assert run.store.get("Pod", "default", "p").spec["nodeName"] == "n"
    assert len(auditor(run).missed) == 1


def test_a_plugin_that_registers_no_such_event_is_named_as_such() -> None:
    run = engine(Color)
    create(run, node("n"), pod("p"))
    run.store.merge_patch("Node", "", "n", {"metadata": {"annotations": {"a": "b"}, "labels": {"color": "red"}}})
    run.run_until_idle()
    answers = {heard.event: dict(heard.answers)["Color"] for heard in auditor(run).missed[0].events}
    assert answers["NodeUpdateNodeAnnotation"] == "not registered"


def test_pods_that_fit_nowhere_are_tried_once_a_shape_and_only_after_changes() -> None:
    run = engine()
    create(run, node("n"), *(pod(f"p{number}", cpu="9") for number in range(5)))
    before = auditor(run).tried
    run.run_until_idle()
    assert auditor(run).tried == before
    run.store.merge_patch("Node", "", "n", {"metadata": {"labels": {"a": "b"}}})
    run.run_until_idle()
    assert auditor(run).tried == before + 1
    assert auditor(run).missed == []


def test_who_was_turned_away_after_the_filters_is_not_judged() -> None:
    run = engine(Doorman)
    create(run, node("n"), pod("p"))
    assert [entry.place for entry in run.queue.entries()] == [SubQueue.UNSCHEDULABLE]
    assert auditor(run).missed == []
    assert auditor(run).undecided == 1


def test_gated_pods_are_not_asleep() -> None:
    run = engine()
    create(run, node("n"), pod("p", schedulingGates=[{"name": "wait"}]))
    assert auditor(run).missed == []
    assert auditor(run).undecided == 0


def test_room_that_is_kept_for_a_nominated_pod_is_no_room() -> None:
    run = engine()
    create(
        run, {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    )
    create(run, node("n", cpu="1"), pod("low", terminationGracePeriodSeconds=30))
    create(run, pod("high", priorityClassName="high"), pod("later"))
    assert auditor(run).missed == []
    assert len(run.queue.entries(SubQueue.UNSCHEDULABLE)) == 2


def test_a_gap_of_upstream_is_told_as_one() -> None:
    run = engine()
    create(run, node("n"), pod("hostile", app="h", affinity=away_from("a")), pod("p", app="a"))
    run.store.delete("Pod", "default", "hostile", grace_period_s=0)
    run.run_until_idle()
    (missed,) = auditor(run).missed
    assert missed.rejected_by == ("InterPodAffinity",)
    assert "kubernetes#134393" in missed.upstream_gap
    assert "kube-scheduler 1.34 misses it too" in str(missed)
    # As upstream, the timeout gets it.
    run.advance(run.now + 400)
    assert run.store.get("Pod", "default", "p").spec["nodeName"] == "n"
    assert auditor(run).wakeups.late == 1


def test_auditing_changes_no_decision() -> None:
    logs: list[list[Raw]] = []
    for audit in (False, True):
        decisions: list[LoggedAttempt] = []
        run = Engine(seed=3, audit=audit, on_decision=decisions.append)
        for number in range(6):
            create(run, node(f"n{number}", cpu="3"))
        for number in range(30):
            create(run, pod(f"p{number}", cpu=("1", "2", "9")[number % 3]))
            if number % 4 == 3:
                run.store.merge_patch(
                    "Node", "", f"n{number % 6}", {"status": {"allocatable": {"cpu": "4"}}}, subresource="status"
                )
                run.run_until_idle()
        run.advance(run.now + 400)
        logs.append([attrs.asdict(decision) for decision in decisions])
    assert logs[0] == logs[1]
    assert len(logs[0]) > 30


@pytest.mark.parametrize("event", ["NodeAdd", "AssignedPodDelete"])
def test_wake_ups_in_vain_are_counted_by_plugin_and_event(event: str) -> None:
    run = engine()
    create(run, node("n", cpu="1"), pod("p", cpu="1"), pod("q", cpu="2"), pod("r", cpu="1"))
    run.advance(run.now + 20)
    if event == "NodeAdd":
        create(run, node("m", cpu="1"))
    else:
        run.store.delete("Pod", "default", "p", grace_period_s=0)
        run.run_until_idle()
    counts = {key: (worth.helped, worth.in_vain) for key, worth in auditor(run).wakeups.counts.items()}
    # A node of one cpu cannot hold q; a pod that goes may always help as far as NodeResourcesFit knows.
    assert counts == {("NodeResourcesFit", event): (1, 0 if event == "NodeAdd" else 1)}
