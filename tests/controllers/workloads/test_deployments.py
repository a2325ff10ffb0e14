import json
from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.nodes.nodetaints import NodeTaints
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.templates import template_hash
from kschedd.controllers.workloads.deployments import Deployments
from kschedd.controllers.workloads.replicasets import ReplicaSets
from kschedd.store.store import Store
from tests.store.manifests import Clock, node, workload


class SchedulerCache:
    """All controllers, and a scheduler that binds up to `room` pods to a single node."""

    def __init__(self, room: int = 1000) -> None:
        self.clock = Clock()
        self.store = Store(now=self.clock, seed=4)
        controllers = [Deployments(), ReplicaSets(), Kubelets(), GarbageCollector(), NodeTaints()]
        self.settling = ControllerRunner(self.store, controllers)
        self.store.create(node())
        self.room = room
        self.most = 0
        self.least = 1000

    def step(self) -> bool:
        """Run the controllers, then the scheduler. Return False if nothing changed."""
        before = self.store.version
        self.settling.run_until_idle()
        pods = self.pods()
        running = sum(p.phase == "Running" and not p.deletion_timestamp for p in pods)
        self.most = max(self.most, sum(not p.deletion_timestamp for p in pods))
        self.least = min(self.least, running)
        for waiting in pods:
            if not waiting.node_name and len(list(self.store.pods_on("node-1"))) < self.room:
                self.store.bind(waiting.namespace, waiting.name, "node-1")
        return self.store.version != before

    def rest(self) -> None:
        for _ in range(200):
            if not self.step():
                wake = self.settling.next_deadline
                if wake is None or wake > self.clock.now + 60:
                    return
                self.clock.now = wake
        raise AssertionError("never comes to rest")

    def apply(self, **fields: Any) -> None:
        self.store.apply(workload("Deployment", **fields))

    def pods(self) -> list[Pod]:
        return [p for p in self.store.list("Pod") if isinstance(p, Pod)]

    def sets(self) -> dict[str, int]:
        """Return the size of each ReplicaSet, by image."""
        return {
            rs.spec["template"]["spec"]["containers"][0]["image"]: rs.spec["replicas"]
            for rs in self.store.list("ReplicaSet")
        }

    @property
    def deployment(self) -> Object:
        return self.store.get("Deployment", "default", "web")

    def condition(self, type_: str) -> dict[str, str]:
        return next(c for c in self.deployment.status["conditions"] if c["type"] == type_)


def test_a_deployment_makes_a_replica_set_that_makes_pods() -> None:
    cluster = SchedulerCache()
    cluster.apply(replicas=3)
    cluster.rest()
    (replica_set,) = cluster.store.list("ReplicaSet")
    digest = replica_set.labels["pod-template-hash"]
    assert replica_set.name == f"web-{digest}"
    assert replica_set.spec["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": digest}
    assert [p.labels["pod-template-hash"] for p in cluster.pods()] == [digest] * 3
    status = cluster.deployment.status
    assert {name: count for name, count in status.items() if name.endswith("Replicas")} == {
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
    }
    assert status["replicas"] == 3
    assert cluster.condition("Available")["reason"] == "MinimumReplicasAvailable"
    assert cluster.condition("Progressing")["reason"] == "NewReplicaSetAvailable"
    assert cluster.deployment.annotations["deployment.kubernetes.io/revision"] == "1"


@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "least"),
    [
        pytest.param("25%", "25%", 13, 8, id="defaults"),
        pytest.param(0, 1, 10, 9, id="no-surge"),
        pytest.param(3, 0, 13, 10, id="never-one-too-few"),
    ],
)
def test_a_rolling_update_stays_within_its_bounds(
    surge: int | str, unavailable: int | str, most: int, least: int
) -> None:
    cluster = SchedulerCache()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    cluster.apply(replicas=10, strategy=strategy)
    cluster.rest()
    cluster.most, cluster.least = 0, 1000
    cluster.apply(replicas=10, image="web:2", strategy=strategy)
    cluster.rest()
    assert cluster.sets() == {"web:1": 0, "web:2": 10}
    assert cluster.most <= most
    assert cluster.least >= least
    assert cluster.deployment.annotations["deployment.kubernetes.io/revision"] == "2"


def test_going_back_takes_the_old_replica_set_again() -> None:
    cluster = SchedulerCache()
    for image in ("web:1", "web:2", "web:1"):
        cluster.apply(image=image)
        cluster.rest()
    assert cluster.sets() == {"web:1": 3, "web:2": 0}
    assert cluster.deployment.annotations["deployment.kubernetes.io/revision"] == "3"


def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    cluster = SchedulerCache()
    cluster.apply(strategy={"type": "Recreate"})
    cluster.rest()
    cluster.apply(image="web:2", strategy={"type": "Recreate"})
    cluster.step()
    assert cluster.sets() == {"web:1": 0}
    assert all(p.deletion_timestamp for p in cluster.pods())
    cluster.rest()
    assert cluster.sets() == {"web:1": 0, "web:2": 3}
    assert len(cluster.pods()) == 3


def test_a_rollout_that_does_not_get_on_stops_within_its_bounds_and_says_so() -> None:
    cluster = SchedulerCache(room=10)
    cluster.apply(replicas=10)
    cluster.rest()
    cluster.room = 0
    cluster.apply(replicas=10, image="web:2")
    cluster.rest()
    assert cluster.sets() == {"web:1": 8, "web:2": 5}
    assert cluster.condition("Progressing")["reason"] == "ReplicaSetUpdated"
    cluster.clock.now += 600
    cluster.rest()
    assert cluster.condition("Progressing")["reason"] == "ProgressDeadlineExceeded"
    assert cluster.condition("Progressing")["status"] == "False"
    cluster.room = 100
    cluster.rest()
    assert cluster.sets() == {"web:1": 0, "web:2": 10}
    assert cluster.condition("Progressing")["reason"] == "NewReplicaSetAvailable"


def test_scaling_in_the_middle_of_a_rollout_scales_both() -> None:
    cluster = SchedulerCache()
    cluster.apply(replicas=10)
    cluster.rest()
    cluster.room = 0
    cluster.apply(replicas=10, image="web:2")
    cluster.rest()
    cluster.apply(replicas=20, image="web:2")
    cluster.settling.run_until_idle()
    sizes = cluster.sets()
    assert sum(sizes.values()) == 25
    assert sizes["web:1"] > 8


def test_a_paused_deployment_scales_but_does_not_roll() -> None:
    cluster = SchedulerCache()
    cluster.apply(replicas=3)
    cluster.rest()
    cluster.apply(replicas=5, image="web:2", paused=True)
    cluster.rest()
    assert cluster.sets() == {"web:1": 5}
    cluster.apply(replicas=5, image="web:2", paused=False)
    cluster.rest()
    assert cluster.sets() == {"web:1": 0, "web:2": 5}


def test_old_replica_sets_are_kept_up_to_the_history_limit() -> None:
    cluster = SchedulerCache()
    for number in range(1, 6):
        cluster.apply(image=f"web:{number}", revisionHistoryLimit=2)
        cluster.rest()
    assert cluster.sets() == {"web:3": 0, "web:4": 0, "web:5": 3}


def test_deleting_a_deployment_takes_everything_along() -> None:
    cluster = SchedulerCache()
    cluster.apply()
    cluster.rest()
    cluster.store.delete("Deployment", "default", "web")
    cluster.rest()
    assert cluster.pods() == []
    assert list(cluster.store.list("ReplicaSet")) == []


def test_a_name_taken_by_a_stranger_leads_to_another_hash() -> None:
    cluster = SchedulerCache()
    created = cluster.store.create(workload("Deployment"))
    stranger = workload("ReplicaSet", f"web-{template_hash(created.spec['template'], 0)}", replicas=0)
    cluster.store.create(stranger)
    cluster.rest()
    assert cluster.deployment.status["collisionCount"] == 1
    assert cluster.deployment.status["availableReplicas"] == 3


@pytest.mark.parametrize(
    "stated",
    [
        pytest.param({"hostNetwork": False}, id="false-where-that-is-no-pointer"),
        pytest.param({"nodeSelector": {}, "tolerations": [], "hostname": ""}, id="empty-fields"),
        pytest.param({"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}, id="defaults-stated"),
        pytest.param({"serviceAccount": ""}, id="empty-text"),
    ],
)
def test_a_manifest_and_what_is_printed_of_it_are_one_revision(stated: dict[str, Any]) -> None:
    cluster = SchedulerCache()
    raw = workload("Deployment")
    template = raw["spec"]["template"]
    template["metadata"]["creationTimestamp"] = None
    template["metadata"]["annotations"] = {}
    template["spec"].update(stated)
    template["spec"]["containers"][0]["env"] = [{"name": "EMPTY", "value": ""}]
    cluster.store.apply(raw)
    cluster.rest()
    printed = json.loads(json.dumps(cluster.deployment.raw))
    for name in stated:
        if stated[name] in (False, "", [], {}):
            printed["spec"]["template"]["spec"].pop(name, None)
    printed["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "EMPTY"}]
    cluster.store.update(printed)
    cluster.rest()
    assert len(cluster.store.list("ReplicaSet")) == 1
    assert template_hash(template, 0) != template_hash({**template, "spec": {**template["spec"], "hostPID": True}}, 0)


@pytest.mark.parametrize("field", ["automountServiceAccountToken", "enableServiceLinks", "shareProcessNamespace"])
def test_a_field_that_is_a_pointer_upstream_says_something_when_it_is_false(field: str) -> None:
    template: dict[str, Any] = {"spec": {"containers": []}}
    assert template_hash({"spec": {"containers": [], field: False}}, 0) != template_hash(template, 0)


def test_replica_sets_without_a_controller_are_adopted_and_others_let_go() -> None:
    cluster = SchedulerCache()
    cluster.apply(replicas=2)
    cluster.rest()
    cluster.store.delete("Deployment", "default", "web", propagation="Orphan")
    cluster.rest()
    (left,) = cluster.store.list("ReplicaSet")
    assert left.owner is None
    cluster.apply(replicas=2)
    cluster.rest()
    (adopted,) = cluster.store.list("ReplicaSet")
    assert adopted.owner is not None
    assert adopted.owner.uid == cluster.deployment.uid
    cluster.store.merge_patch("ReplicaSet", "default", adopted.name, {"metadata": {"labels": {"app": "other"}}})
    cluster.rest()
    released = cluster.store.get("ReplicaSet", "default", adopted.name)
    assert released.owner is None


def test_going_back_notes_the_revisions_that_the_replica_set_had() -> None:
    cluster = SchedulerCache()
    for image in ("web:1", "web:2", "web:1"):
        cluster.apply(image=image)
        cluster.rest()
    (now,) = (rs for rs in cluster.store.list("ReplicaSet") if rs.spec["replicas"])
    assert now.annotations["deployment.kubernetes.io/revision"] == "3"
    assert now.annotations["deployment.kubernetes.io/revision-history"] == "1"


def test_annotations_and_min_ready_seconds_reach_the_new_replica_set() -> None:
    cluster = SchedulerCache()
    cluster.apply()
    cluster.rest()
    note = {"metadata": {"annotations": {"kubernetes.io/change-cause": "first"}}, "spec": {"minReadySeconds": 7}}
    cluster.store.merge_patch("Deployment", "default", "web", note)
    cluster.rest()
    (replica_set,) = cluster.store.list("ReplicaSet")
    assert replica_set.annotations["kubernetes.io/change-cause"] == "first"
    assert replica_set.spec["minReadySeconds"] == 7


def test_the_progress_deadline_does_not_run_while_a_deployment_is_paused() -> None:
    cluster = SchedulerCache(room=0)
    cluster.apply(replicas=2)
    cluster.rest()
    cluster.apply(replicas=2, paused=True)
    cluster.rest()
    assert (cluster.condition("Progressing")["status"], cluster.condition("Progressing")["reason"]) == (
        "Unknown",
        "DeploymentPaused",
    )
    cluster.clock.now += 700
    cluster.rest()
    cluster.apply(replicas=2, paused=False)
    cluster.rest()
    assert cluster.condition("Progressing")["reason"] == "DeploymentResumed"
    cluster.clock.now += 600
    cluster.rest()
    assert cluster.condition("Progressing")["reason"] == "ProgressDeadlineExceeded"


def test_why_pods_are_refused_is_said_by_the_deployment_too() -> None:
    cluster = SchedulerCache()
    raw = workload("Deployment", replicas=1)
    raw["spec"]["template"]["spec"]["priorityClassName"] = "later"
    cluster.store.create(raw)
    cluster.settling.run_until_idle()
    failure = cluster.condition("ReplicaFailure")
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    assert failure["message"].endswith("no PriorityClass with name later was found")
