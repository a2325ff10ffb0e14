from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.controllers.workloads.daemonsets import DaemonSets
from kschedd.controllers.workloads.pod_state import available
from tests.controllers.workloads.clusters import WorkloadCluster
from tests.store.manifests import node, pod, workload

HASH = "controller-revision-hash"


class DaemonCluster(WorkloadCluster):
    def __init__(self, nodes: int = 3, **spec: Any) -> None:
        super().__init__([DaemonSets()], nodes)
        raw = workload("DaemonSet", "agent", **spec)
        del raw["spec"]["replicas"]
        self.store.create(raw)
        self.rest()

    @property
    def daemon_set(self) -> Object:
        return self.get("DaemonSet", "agent")

    def counts(self, *names: str) -> list[int]:
        return [self.daemon_set.status.get(name, 0) for name in names]

    def on(self) -> list[str]:
        return sorted(p.node_name for p in self.pods() if p.owner is not None and not p.deletion_timestamp)

    def update(self, image: str) -> None:
        template = {"spec": {"containers": [{"name": "app", "image": image}]}}
        self.patch("DaemonSet", "agent", {"spec": {"template": template}})

    def images(self) -> list[str]:
        return sorted(p.raw["spec"]["containers"][0]["image"] for p in self.pods())


def test_there_is_a_pod_on_each_node_and_the_status_counts_them() -> None:
    cluster = DaemonCluster()
    assert cluster.on() == ["n0", "n1", "n2"]
    assert dict(cluster.daemon_set.status) == {
        "currentNumberScheduled": 3,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 3,
        "numberReady": 3,
        "observedGeneration": 1,
        "updatedNumberScheduled": 3,
        "numberAvailable": 3,
    }
    (revision,) = cluster.store.list("ControllerRevision")
    assert revision.raw["revision"] == 1
    assert {p.labels[HASH] for p in cluster.pods()} == {revision.labels[HASH]}
    assert revision.name == f"agent-{revision.labels[HASH]}"


def test_a_node_that_comes_gets_a_pod_and_one_that_goes_is_no_longer_counted() -> None:
    cluster = DaemonCluster(nodes=1)
    cluster.store.create(node("late"))
    cluster.rest()
    assert cluster.on() == ["late", "n0"]
    cluster.store.delete("Node", "", "n0")
    cluster.rest()
    assert cluster.counts("desiredNumberScheduled", "numberReady") == [1, 1]


def test_labels_and_taints_of_a_node_that_change_bring_and_take_pods() -> None:
    cluster = DaemonCluster(nodes=2)
    cluster.patch("DaemonSet", "agent", {"spec": {"template": {"spec": {"nodeSelector": {"log": "yes"}}}}})
    cluster.rest()
    assert cluster.on() == []
    cluster.patch("Node", "n1", {"metadata": {"labels": {"log": "yes"}}}, "")
    cluster.rest()
    assert cluster.on() == ["n1"]
    cluster.patch("Node", "n1", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}, "")
    cluster.rest()
    assert cluster.on() == ["n1"]
    assert cluster.counts("desiredNumberScheduled", "numberMisscheduled") == [0, 1]
    cluster.patch("Node", "n1", {"spec": {"taints": [{"key": "gpu", "effect": "NoExecute"}]}}, "")
    cluster.rest()
    assert cluster.on() == []


def test_a_nodes_heartbeat_leads_to_no_write() -> None:
    cluster = DaemonCluster()
    before = cluster.store.version
    cluster.store.patch_status("Node", "", "n0", {"nodeInfo": {"kernelVersion": "6"}})
    cluster.rest()
    assert cluster.store.version == before + 1


def test_pods_of_an_unreachable_node_stay() -> None:
    cluster = DaemonCluster()
    taints = [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    cluster.patch("Node", "n1", {"spec": {"taints": taints}}, "")
    cluster.rest()
    assert cluster.on() == ["n0", "n1", "n2"]


def test_a_pod_waiting_for_a_node_that_is_gone_is_deleted() -> None:
    cluster = DaemonCluster(nodes=1)
    cluster.scheduling = False
    cluster.store.create(node("short"))
    cluster.rest()
    assert len(cluster.pods()) == 2
    cluster.store.delete("Node", "", "short")
    cluster.rest()
    assert cluster.on() == ["n0"]


def test_failed_pods_are_replaced_after_ever_longer_waits() -> None:
    cluster = DaemonCluster(nodes=1)
    waits = []
    for _ in range(4):
        (failed,) = cluster.pods()
        cluster.fail(failed.name)
        start = cluster.clock.now
        while any(p.name == failed.name for p in cluster.pods()):
            if not cluster.step():
                due = cluster.runner.next_deadline
                assert due is not None
                cluster.clock.now = due
        waits.append(cluster.clock.now - start)
        cluster.rest(0)
    assert waits == [0, 1, 2, 4]


def test_a_rolling_update_takes_one_node_after_the_other() -> None:
    cluster = DaemonCluster()
    cluster.update("web:2")
    most_away = 0
    while cluster.step():
        ready = sum(p.phase == "Running" and not p.deletion_timestamp for p in cluster.pods())
        most_away = max(most_away, 3 - ready)
    cluster.rest()
    assert most_away <= 1
    assert cluster.images() == ["web:2"] * 3
    assert [r.raw["revision"] for r in cluster.store.list("ControllerRevision")] != [1]
    assert cluster.counts("updatedNumberScheduled", "numberAvailable", "observedGeneration") == [3, 3, 2]


@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_rolling_update_has_as_many_nodes_without_an_available_pod_as_it_may(most: int) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most, "maxSurge": 0}}
    cluster = DaemonCluster(nodes=6, minReadySeconds=10, updateStrategy=strategy)
    cluster.update("web:2")
    away = []
    for _ in range(100):
        moved = cluster.step()
        there = [p for p in cluster.pods() if not p.deletion_timestamp and available(p, 10, cluster.clock.now)]
        away.append(6 - len(there))
        if not moved and cluster.runner.next_deadline is None:
            break
        if not moved:
            cluster.clock.now = cluster.runner.next_deadline
    assert max(away) == most
    assert away[-1] == 0
    assert cluster.images() == ["web:2"] * 6


def test_with_surge_a_pod_that_should_not_run_any_more_goes_once_enough_others_do() -> None:
    update = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    cluster = DaemonCluster(updateStrategy=update)
    cluster.patch("Node", "n2", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}, "")
    cluster.rest()
    assert cluster.on() == ["n0", "n1", "n2"]
    cluster.update("web:2")
    cluster.rest()
    assert cluster.on() == ["n0", "n1"]
    assert cluster.images() == ["web:2"] * 2


def test_with_surge_a_new_pod_comes_before_the_old_one_goes() -> None:
    update = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    cluster = DaemonCluster(updateStrategy=update)
    cluster.update("web:2")
    most = 0
    while cluster.step():
        running = [p for p in cluster.pods() if p.phase == "Running" and not p.deletion_timestamp]
        assert len({p.node_name for p in running}) == 3
        most = max(most, len(cluster.pods()))
    cluster.rest()
    assert most > 3
    assert cluster.images() == ["web:2"] * 3


def test_on_delete_leaves_old_pods_until_somebody_deletes_them() -> None:
    cluster = DaemonCluster(updateStrategy={"type": "OnDelete"})
    cluster.update("web:2")
    cluster.rest()
    assert cluster.images() == ["web:1"] * 3
    cluster.store.delete("Pod", "default", cluster.pods()[0].name)
    cluster.rest()
    assert cluster.images() == ["web:1", "web:1", "web:2"]
    assert cluster.counts("updatedNumberScheduled") == [1]


def test_going_back_takes_the_old_revision_with_a_new_number() -> None:
    cluster = DaemonCluster()
    for image in ("web:2", "web:1"):
        cluster.update(image)
        cluster.rest()
    assert sorted(r.raw["revision"] for r in cluster.store.list("ControllerRevision")) == [2, 3]
    assert cluster.images() == ["web:1"] * 3


def test_old_revisions_go_beyond_the_history_limit() -> None:
    cluster = DaemonCluster(revisionHistoryLimit=1)
    for number in range(2, 6):
        cluster.update(f"web:{number}")
        cluster.rest()
    assert sorted(r.raw["revision"] for r in cluster.store.list("ControllerRevision")) == [4, 5]


def test_available_after_min_ready_seconds() -> None:
    cluster = DaemonCluster(nodes=1, minReadySeconds=30)
    assert cluster.counts("numberReady", "numberAvailable") == [1, 1]
    start = cluster.clock.now
    cluster.store.create(node("late"))
    cluster.rest(0)
    assert cluster.counts("numberReady", "numberAvailable") == [2, 1]
    assert cluster.runner.next_deadline == start + 30


def test_pods_with_matching_labels_are_adopted() -> None:
    cluster = DaemonCluster(nodes=2)
    cluster.store.delete("DaemonSet", "default", "agent", propagation="Orphan")
    cluster.rest()
    assert [p.owner for p in cluster.pods()] == [None, None]
    before = {p.uid for p in cluster.pods()}
    raw = workload("DaemonSet", "agent")
    del raw["spec"]["replicas"]
    cluster.store.create(raw)
    cluster.rest()
    assert {p.uid for p in cluster.pods() if p.owner is not None} == before


def test_two_pods_on_a_node_become_one() -> None:
    cluster = DaemonCluster(nodes=1)
    twin = pod("twin", nodeName="n0")
    twin["metadata"]["labels"] = {"app": "agent", HASH: cluster.pods()[0].labels[HASH]}
    cluster.clock.now += 5
    cluster.store.create(twin)
    cluster.rest()
    (left,) = cluster.pods()
    assert left.name != "twin"


def test_a_revision_of_another_that_has_the_name_leads_to_another_hash() -> None:
    first = DaemonCluster(nodes=1)
    (revision,) = first.store.list("ControllerRevision")
    cluster = WorkloadCluster([DaemonSets()], 1)
    cluster.store.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": revision.name},
            "data": {"spec": {"template": {"$patch": "replace"}}},
            "revision": 1,
        }
    )
    raw = workload("DaemonSet", "agent")
    del raw["spec"]["replicas"]
    cluster.store.create(raw)
    cluster.rest()
    status = cluster.get("DaemonSet", "agent").status
    assert (status["collisionCount"], status["numberReady"]) == (1, 1)


def test_pods_that_are_refused_are_tried_again() -> None:
    cluster = WorkloadCluster([DaemonSets()], 2)
    raw = workload("DaemonSet", "agent")
    del raw["spec"]["replicas"]
    raw["spec"]["template"]["spec"]["priorityClassName"] = "later"
    cluster.store.create(raw)
    cluster.rest(0)
    assert cluster.pods() == []
    assert cluster.runner.next_deadline == cluster.clock.now + 1
    (event,) = [obj.raw for obj in cluster.store.list("Event")]
    assert (event["reason"], event["source"]) == ("FailedCreate", {"component": "daemonset-controller"})
    assert event["message"].startswith('Error creating: pods "agent-')
    later = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "later"}, "value": 5}
    cluster.store.create(later)
    cluster.rest()
    assert [p.priority for p in cluster.pods()] == [5, 5]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_deleting_a_daemon_set_takes_pods_and_revisions_along(propagation: str) -> None:
    cluster = DaemonCluster()
    cluster.store.delete("DaemonSet", "default", "agent", propagation=propagation)
    cluster.rest()
    assert cluster.pods() == []
    assert list(cluster.store.list("ControllerRevision")) == []


@pytest.mark.parametrize("data", [{}, {"spec": 3}, {"spec": {"template": "none"}}])
def test_revisions_with_other_data_are_no_fault(data: Any) -> None:
    cluster = DaemonCluster(nodes=1)
    meta = {"name": "odd", "labels": {"app": "agent"}}
    raw = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta, "revision": 7, "data": data}
    cluster.store.create(raw)
    cluster.rest()
    assert cluster.runner.faults() == []
    assert cluster.counts("numberReady") == [1]
