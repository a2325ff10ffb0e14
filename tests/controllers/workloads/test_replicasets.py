from functools import partial
from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.nodes.tainteviction import TaintEviction
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.workloads.pod_state import deletion_rank
from kschedd.controllers.workloads.replicasets import ReplicaSets
from kschedd.store.store import Store
from tests.store.manifests import Clock, node, pod, workload


class SchedulerCache:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store = Store(now=self.clock, seed=2)
        self.settling = ControllerRunner(self.store, [ReplicaSets(), Kubelets()])
        self.store.create(node())

    def pods(self) -> list[Pod]:
        return [p for p in self.store.list("Pod") if isinstance(p, Pod)]

    def bind_all(self) -> None:
        for waiting in self.pods():
            if not waiting.node_name:
                self.store.bind(waiting.namespace, waiting.name, "node-1")
        self.settling.run_until_idle()

    @property
    def replica_set(self) -> Object:
        return self.store.get("ReplicaSet", "default", "web")


@pytest.fixture
def cluster() -> SchedulerCache:
    return SchedulerCache()


def made(cluster: SchedulerCache, **spec: Any) -> None:
    cluster.store.create(workload("ReplicaSet", **spec))
    cluster.settling.run_until_idle()


def test_a_replica_set_makes_its_pods(cluster: SchedulerCache) -> None:
    made(cluster, replicas=3)
    pods = cluster.pods()
    assert len(pods) == 3
    assert all(p.name.startswith("web-") and p.owner and p.owner.uid == cluster.replica_set.uid for p in pods)
    assert all(p.labels == {"app": "web"} for p in pods)
    status = cluster.replica_set.status
    assert (status["replicas"], status.get("readyReplicas"), status["observedGeneration"]) == (3, None, 1)
    cluster.bind_all()
    assert cluster.replica_set.status["availableReplicas"] == 3


def test_a_lost_pod_is_replaced(cluster: SchedulerCache) -> None:
    made(cluster)
    cluster.bind_all()
    lost = cluster.pods()[0]
    cluster.store.patch_status("Pod", "default", lost.name, {"phase": "Failed"})
    cluster.settling.run_until_idle()
    assert len([p for p in cluster.pods() if not p.finished]) == 3


def test_scaling_down_deletes_the_surplus(cluster: SchedulerCache) -> None:
    made(cluster, replicas=4)
    cluster.bind_all()
    cluster.store.merge_patch("ReplicaSet", "default", "web", {"spec": {"replicas": 1}})
    cluster.settling.run_until_idle()
    cluster.clock.now += 30
    cluster.settling.run_until_idle()
    assert len(cluster.pods()) == 1
    assert cluster.replica_set.status["replicas"] == 1


def test_more_pods_than_one_burst_are_made_all_the_same(cluster: SchedulerCache) -> None:
    made(cluster, replicas=1200)
    assert len(cluster.pods()) == 1200


def test_pods_count_as_available_after_min_ready_seconds(cluster: SchedulerCache) -> None:
    made(cluster, minReadySeconds=20)
    cluster.bind_all()
    assert cluster.replica_set.status["readyReplicas"] == 3
    assert cluster.replica_set.status.get("availableReplicas") is None
    assert cluster.settling.next_deadline == cluster.clock.now + 20
    cluster.clock.now += 20
    cluster.settling.run_until_idle()
    assert cluster.replica_set.status["availableReplicas"] == 3


def test_orphans_are_adopted_and_strangers_let_go(cluster: SchedulerCache) -> None:
    cluster.store.create(pod("orphan"))
    made(cluster, replicas=2)
    assert len(cluster.pods()) == 2
    orphan = cluster.store.get("Pod", "default", "orphan")
    assert orphan.owner is not None
    cluster.store.merge_patch("Pod", "default", "orphan", {"metadata": {"labels": {"app": "other"}}})
    cluster.settling.run_until_idle()
    assert cluster.store.get("Pod", "default", "orphan").owner is None
    assert len(cluster.pods()) == 3


def test_pods_that_are_refused_are_tried_again_later(cluster: SchedulerCache) -> None:
    raw = workload("ReplicaSet", replicas=2)
    raw["spec"]["template"]["spec"]["priorityClassName"] = "later"
    cluster.store.create(raw)
    cluster.settling.run_until_idle()
    (failure,) = cluster.replica_set.status["conditions"]
    assert (failure["type"], failure["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert failure["message"].endswith("no PriorityClass with name later was found")
    assert cluster.settling.next_deadline == cluster.clock.now + 1
    cluster.clock.now += 1
    cluster.settling.run_until_idle()
    assert cluster.settling.next_deadline == cluster.clock.now + 2
    cluster.store.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "later"}, "value": 5}
    )
    cluster.clock.now += 2
    cluster.settling.run_until_idle()
    assert [p.priority for p in cluster.pods()] == [5, 5]
    assert cluster.replica_set.status.get("conditions") is None


def test_a_replica_set_being_deleted_makes_nothing(cluster: SchedulerCache) -> None:
    raw = workload("ReplicaSet")
    raw["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.store.create(raw)
    cluster.store.delete("ReplicaSet", "default", "web")
    cluster.settling.run_until_idle()
    assert cluster.pods() == []


def candidate(
    name: str, node_name: str = "n", phase: str = "Running", ready_s: float | None = 1000, **more: Any
) -> Pod:
    raw = pod(name, **({"nodeName": node_name} if node_name else {}))
    raw["metadata"] |= {"uid": name, "creationTimestamp": "2020-01-01T00:00:00Z", "annotations": more.get("notes", {})}
    conditions = []
    if ready_s is not None:
        since = "2020-01-01T00:16:40Z" if ready_s == 1000 else "2020-01-01T00:33:00Z"
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    restarts = [{"restartCount": more.get("restarts", 0)}]
    return Pod.from_raw({**raw, "status": {"phase": phase, "conditions": conditions, "containerStatuses": restarts}})


COST = {"controller.kubernetes.io/pod-deletion-cost": "-5"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(candidate("z", node_name=""), candidate("a", phase="Pending"), id="unassigned"),
        pytest.param(candidate("z", phase="Pending"), candidate("a"), id="pending"),
        pytest.param(candidate("z", ready_s=None), candidate("a"), id="not-ready"),
        pytest.param(candidate("z", notes=COST), candidate("a", node_name="crowded"), id="cheap-to-delete"),
        pytest.param(candidate("z", node_name="crowded"), candidate("a"), id="more-of-them-on-its-node"),
        pytest.param(candidate("z", ready_s=20), candidate("a"), id="ready-for-a-shorter-time"),
        pytest.param(candidate("z", restarts=3), candidate("a"), id="more-restarts"),
        pytest.param(candidate("a"), candidate("z"), id="else-by-uid"),
    ],
)
def test_who_is_deleted_first(first: Pod, second: Pod) -> None:
    now = 1_577_838_800.0  # 2020-01-01T00:33:20Z
    rank = partial(deletion_rank, beside={"crowded": 4, "n": 1}, now=now)
    assert rank(first) < rank(second)


def test_a_replication_controller_makes_and_adopts_pods_by_its_map_of_labels(cluster: SchedulerCache) -> None:
    cluster.store.create(pod("orphan"))
    cluster.store.create(pod("stranger") | {"metadata": {"name": "stranger", "labels": {"app": "other"}}})
    raw = workload("ReplicationController", replicas=3)
    raw["apiVersion"] = "v1"
    raw["spec"]["selector"] = {"app": "web"}
    cluster.store.create(raw)
    cluster.settling.run_until_idle()
    controller = cluster.store.get("ReplicationController", "default", "web")
    owned = [p.name for p in cluster.pods() if p.owner is not None and p.owner.uid == controller.uid]
    assert len(owned) == 3
    assert "orphan" in owned
    assert "stranger" not in owned
    cluster.bind_all()
    cluster.store.merge_patch("ReplicationController", "default", "web", {"spec": {"replicas": 0}})
    cluster.settling.run_until_idle()
    cluster.clock.now += 30
    cluster.settling.run_until_idle()
    assert [p.name for p in cluster.pods()] == ["stranger"]
    assert cluster.store.get("ReplicationController", "default", "web").status["replicas"] == 0


def test_two_that_select_the_same_orphan_do_not_share_it(cluster: SchedulerCache) -> None:
    cluster.store.create(pod("orphan"))
    for name in ("first", "second"):
        raw = workload("ReplicaSet", name, replicas=1)
        raw["spec"]["selector"] = {"matchLabels": {"app": "web"}}
        raw["spec"]["template"]["metadata"]["labels"] = {"app": "web"}
        cluster.store.create(raw)
    cluster.settling.run_until_idle()
    owners = [p.owner.name for p in cluster.pods() if p.owner is not None]
    assert sorted(owners) == ["first", "second"]


def test_a_selector_of_expressions_adopts_as_well(cluster: SchedulerCache) -> None:
    cluster.store.create(pod("orphan"))
    raw = workload("ReplicaSet", replicas=1)
    raw["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "shop"]}]}
    cluster.store.create(raw)
    cluster.settling.run_until_idle()
    assert [p.name for p in cluster.pods()] == ["orphan"]


def test_pods_that_their_kubelet_refuses_again_and_again_are_replaced_ever_less_often(cluster: SchedulerCache) -> None:
    raw = workload("ReplicaSet", replicas=2)
    raw["spec"]["template"]["spec"]["nodeName"] = "node-1"
    raw["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100"}}
    cluster.store.create(raw)
    counts = []
    for _ in range(5):
        cluster.settling.run_until_idle()
        counts.append(len(cluster.pods()))
        due = cluster.settling.next_deadline
        assert due is not None
        counts.append(due - cluster.clock.now)
        cluster.clock.now = due
    assert counts == [4, 1, 6, 2, 8, 4, 10, 8, 12, 16]


def test_pods_that_a_taint_evicts_at_once_are_replaced_ever_less_often() -> None:
    clock = Clock()
    store = Store(now=clock, seed=2)
    runner = ControllerRunner(store, [TaintEviction(), ReplicaSets(), Kubelets()])
    store.create(node(taints=[{"key": "x", "effect": "NoExecute"}]))
    raw = workload("ReplicaSet", replicas=2)
    tolerated = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
    raw["spec"]["template"]["spec"] |= {"nodeName": "node-1", "tolerations": [tolerated]}
    store.create(raw)
    waits = []
    for _ in range(4):
        runner.run_until_idle()
        due = runner.next_deadline
        assert due is not None
        waits.append(due - clock.now)
        clock.now = due
    assert waits == [1, 2, 4, 8]


def test_pods_that_fail_once_they_are_old_are_replaced_at_once(cluster: SchedulerCache) -> None:
    made(cluster, replicas=2)
    for _ in range(3):
        cluster.bind_all()
        cluster.clock.now += 60
        for old in [p for p in cluster.pods() if not p.finished]:
            cluster.store.patch_status("Pod", "default", old.name, {"phase": "Failed"})
        cluster.settling.run_until_idle()
        assert len([p for p in cluster.pods() if not p.finished]) == 2
