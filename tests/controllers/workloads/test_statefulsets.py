import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.config.versions.kube_versions import kube_version
from kschedd.controllers.storage.protection import StorageProtection
from kschedd.controllers.workloads.statefulsets import StatefulSets
from kschedd.scenarios.commands import ScenarioCluster
from tests.controllers.workloads.clusters import WorkloadCluster
from tests.store.manifests import workload

HASH = "controller-revision-hash"


def claim_template(name: str = "data") -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": spec}


class StatefulCluster(WorkloadCluster):
    def __init__(self, *, nodes: int = 2, rest: bool = True, **spec: Any) -> None:
        super().__init__([StatefulSets(), StorageProtection()], nodes)
        self.created: list[str] = []
        self.store.create(workload("StatefulSet", **{"serviceName": "web", **spec}))
        if rest:
            self.rest()

    @property
    def set(self) -> Object:
        return self.get("StatefulSet", "web")

    def names(self) -> list[str]:
        return [p.name for p in self.pods()]

    def images(self) -> list[str]:
        return [p.raw["spec"]["containers"][0]["image"] for p in self.pods()]

    def update(self, image: str) -> None:
        template = {"spec": {"containers": [{"name": "app", "image": image}]}}
        self.patch("StatefulSet", "web", {"spec": {"template": template}})

    def scale(self, replicas: int) -> None:
        self.patch("StatefulSet", "web", {"spec": {"replicas": replicas}})

    def pod(self, name: str) -> Pod:
        found = self.store.get("Pod", "default", name)
        assert isinstance(found, Pod)
        return found

    def claims(self) -> list[str]:
        return [claim.name for claim in self.store.list("PersistentVolumeClaim")]


def test_pods_have_names_labels_and_hostnames_that_stay() -> None:
    cluster = StatefulCluster()
    assert cluster.names() == ["web-0", "web-1", "web-2"]
    pod = cluster.pod("web-1")
    (revision,) = cluster.store.list("ControllerRevision")
    assert dict(pod.labels) == {
        "app": "web",
        "apps.kubernetes.io/pod-index": "1",
        "statefulset.kubernetes.io/pod-name": "web-1",
        HASH: revision.name,
    }
    assert (pod.raw["spec"]["hostname"], pod.raw["spec"]["subdomain"]) == ("web-1", "web")
    assert dict(cluster.set.status) == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "currentRevision": revision.name,
        "updateRevision": revision.name,
        "collisionCount": 0,
    }


def test_each_pod_waits_for_the_one_before_it() -> None:
    cluster = StatefulCluster(rest=False)
    cluster.scheduling = False
    cluster.rest()
    assert cluster.names() == ["web-0"]
    cluster.store.bind("default", "web-0", "n0")
    cluster.rest()
    assert cluster.names() == ["web-0", "web-1"]


def test_parallel_waits_for_nobody() -> None:
    cluster = StatefulCluster(rest=False, podManagementPolicy="Parallel")
    cluster.scheduling = False
    cluster.rest()
    assert cluster.names() == ["web-0", "web-1", "web-2"]


def test_a_rolling_update_goes_from_the_last_to_the_first() -> None:
    cluster = StatefulCluster()
    old = cluster.set.status["currentRevision"]
    cluster.update("web:2")
    order: list[str] = []
    while cluster.step() or cluster.runner.next_deadline is not None:
        for pod in cluster.pods():
            if pod.deletion_timestamp and pod.name not in order:
                order.append(pod.name)
        assert sum(not p.deletion_timestamp for p in cluster.pods()) >= 2
        if cluster.runner.next_deadline is not None:
            cluster.clock.now = max(cluster.clock.now, cluster.runner.next_deadline)
    assert order == ["web-2", "web-1", "web-0"]
    assert cluster.images() == ["web:2"] * 3
    status = cluster.set.status
    assert status["currentRevision"] == status["updateRevision"] != old


def test_a_partition_keeps_old_pods_old_even_when_they_come_back() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    cluster = StatefulCluster(updateStrategy=strategy)
    cluster.update("web:2")
    cluster.rest()
    assert cluster.images() == ["web:1", "web:1", "web:2"]
    cluster.store.delete("Pod", "default", "web-0", grace_period_s=0)
    cluster.rest()
    assert cluster.images() == ["web:1", "web:1", "web:2"]
    status = cluster.set.status
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
    assert status["currentRevision"] != status["updateRevision"]


def test_on_delete_leaves_old_pods_until_somebody_deletes_them() -> None:
    cluster = StatefulCluster(updateStrategy={"type": "OnDelete"})
    cluster.update("web:2")
    cluster.rest()
    assert cluster.images() == ["web:1"] * 3
    cluster.store.delete("Pod", "default", "web-1")
    cluster.rest()
    assert cluster.images() == ["web:1", "web:2", "web:1"]


def test_going_back_takes_the_old_revision_with_a_new_number() -> None:
    cluster = StatefulCluster(replicas=1)
    first = cluster.set.status["currentRevision"]
    for image in ("web:2", "web:1"):
        cluster.update(image)
        cluster.rest()
    revisions = {r.name: r.raw["revision"] for r in cluster.store.list("ControllerRevision")}
    assert revisions[first] == 3
    assert cluster.set.status["currentRevision"] == first


def test_old_revisions_go_beyond_the_history_limit() -> None:
    cluster = StatefulCluster(replicas=1, revisionHistoryLimit=1)
    for number in range(2, 6):
        cluster.update(f"web:{number}")
        cluster.rest()
    assert sorted(r.raw["revision"] for r in cluster.store.list("ControllerRevision")) == [4, 5]


def test_a_pod_of_a_lost_node_keeps_its_name_until_it_is_deleted_by_force() -> None:
    cluster = StatefulCluster(replicas=2)
    cluster.store.patch_status("Node", "", "n0", {"conditions": [{"type": "Ready", "status": "Unknown"}]})
    cluster.scheduling = False
    cluster.store.delete("Pod", "default", "web-0")
    cluster.rest()
    cluster.clock.now += 3600
    cluster.rest()
    assert cluster.pod("web-0").deletion_timestamp
    before = cluster.pod("web-0").uid
    cluster.store.delete("Pod", "default", "web-0", grace_period_s=0)
    cluster.rest()
    assert cluster.pod("web-0").uid != before


def test_claims_are_made_for_each_pod_and_kept_when_it_goes() -> None:
    cluster = StatefulCluster(replicas=2, volumeClaimTemplates=[claim_template()])
    assert cluster.claims() == ["data-web-0", "data-web-1"]
    claim = cluster.get("PersistentVolumeClaim", "data-web-0")
    assert dict(claim.labels) == {"app": "web"}
    assert not claim.metadata.get("ownerReferences")
    (volume,) = cluster.pod("web-1").raw["spec"]["volumes"]
    assert volume == {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}
    cluster.scale(0)
    cluster.rest()
    cluster.store.delete("StatefulSet", "default", "web")
    cluster.rest()
    assert cluster.claims() == ["data-web-0", "data-web-1"]


@pytest.mark.parametrize(
    ("scaled", "deleted", "after_scaling", "after_deleting"),
    [
        pytest.param("Retain", "Retain", 3, 3, id="kept"),
        pytest.param("Delete", "Retain", 1, 1, id="gone-with-the-scaled-pod"),
        pytest.param("Retain", "Delete", 3, 0, id="gone-with-the-set"),
        pytest.param("Delete", "Delete", 1, 0, id="gone-with-either"),
    ],
)
def test_the_retention_policy_says_with_what_claims_go(
    scaled: str, deleted: str, after_scaling: int, after_deleting: int
) -> None:
    policy = {"whenScaled": scaled, "whenDeleted": deleted}
    spec: dict[str, Any] = {"persistentVolumeClaimRetentionPolicy": policy, "volumeClaimTemplates": [claim_template()]}
    cluster = StatefulCluster(**spec)
    cluster.scale(1)
    cluster.rest()
    assert len(cluster.claims()) == after_scaling
    cluster.store.delete("StatefulSet", "default", "web")
    cluster.rest()
    assert len(cluster.claims()) == after_deleting


def test_a_changed_retention_policy_reaches_claims_that_are_there() -> None:
    cluster = StatefulCluster(replicas=1, volumeClaimTemplates=[claim_template()])
    policy = {"whenScaled": "Retain", "whenDeleted": "Delete"}
    cluster.patch("StatefulSet", "web", {"spec": {"persistentVolumeClaimRetentionPolicy": policy}})
    cluster.rest()
    (owner,) = cluster.get("PersistentVolumeClaim", "data-web-0").metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("StatefulSet", cluster.set.uid)


def test_scaled_down_and_up_again_gives_a_new_claim() -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    spec: dict[str, Any] = {"persistentVolumeClaimRetentionPolicy": policy, "volumeClaimTemplates": [claim_template()]}
    cluster = StatefulCluster(replicas=2, **spec)
    before = cluster.get("PersistentVolumeClaim", "data-web-1").uid
    cluster.scale(1)
    cluster.runner.run_until_idle()
    cluster.scale(2)  # Before the pod is removed: its claim is deleted nevertheless, and the new pod waits for this.
    cluster.rest()
    assert cluster.get("PersistentVolumeClaim", "data-web-1").uid != before
    assert cluster.pod("web-1").phase == "Running"


def test_ordinals_may_start_elsewhere() -> None:
    cluster = StatefulCluster(replicas=2, ordinals={"start": 5})
    assert cluster.names() == ["web-5", "web-6"]
    cluster.patch("StatefulSet", "web", {"spec": {"ordinals": {"start": 6}}})
    cluster.rest()
    assert cluster.names() == ["web-6", "web-7"]


def test_pods_are_adopted_by_name_and_labels_and_get_their_identity_labels() -> None:
    cluster = StatefulCluster(replicas=2)
    cluster.patch("Pod", "web-1", {"metadata": {"labels": {"apps.kubernetes.io/pod-index": None}}})
    cluster.store.delete("StatefulSet", "default", "web", propagation="Orphan")
    cluster.rest()
    before = {p.name: p.uid for p in cluster.pods()}
    cluster.store.create(workload("StatefulSet", replicas=2, serviceName="web"))
    cluster.rest()
    assert {p.name: p.uid for p in cluster.pods()} == before
    assert cluster.pod("web-1").labels["apps.kubernetes.io/pod-index"] == "1"
    assert all(p.owner is not None for p in cluster.pods())


def test_the_next_pod_waits_until_the_one_before_is_available() -> None:
    cluster = StatefulCluster(rest=False, replicas=2, minReadySeconds=30)
    cluster.rest(0)
    assert cluster.names() == ["web-0"]
    cluster.rest()
    assert cluster.names() == ["web-0", "web-1"]
    assert cluster.set.status["availableReplicas"] == 2


def test_a_failed_pod_comes_back_under_its_name() -> None:
    cluster = StatefulCluster(replicas=2)
    before = cluster.pod("web-0").uid
    cluster.fail("web-0")
    cluster.rest()
    assert cluster.pod("web-0").uid != before
    assert cluster.pod("web-0").phase == "Running"


def test_pods_that_are_refused_are_tried_again() -> None:
    cluster = WorkloadCluster([StatefulSets()])
    raw = workload("StatefulSet", replicas=1, serviceName="web")
    raw["spec"]["template"]["spec"]["priorityClassName"] = "later"
    cluster.store.create(raw)
    cluster.rest(0)
    assert cluster.pods() == []
    assert cluster.runner.next_deadline == cluster.clock.now + 1
    later = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "later"}, "value": 5}
    cluster.store.create(later)
    cluster.rest()
    assert [p.priority for p in cluster.pods()] == [5]


def failures(cluster: WorkloadCluster) -> list[tuple[str, str]]:
    events = [obj.raw for obj in cluster.store.list("Event")]
    return [(raw["reason"], raw["message"]) for raw in events if raw["type"] == "Warning"]


def test_a_refused_pod_is_told_once() -> None:
    cluster = WorkloadCluster([StatefulSets()])
    raw = workload("StatefulSet", replicas=1, serviceName="web")
    raw["spec"]["template"]["spec"]["priorityClassName"] = "later"
    cluster.store.create(raw)
    cluster.rest(20)
    why = 'pods "web-0" is forbidden: no PriorityClass with name later was found'
    assert failures(cluster) == [("FailedCreate", f"Create Pod web-0 in StatefulSet web failed error: {why}")]


def test_a_pod_is_not_made_before_its_claims() -> None:
    cluster = WorkloadCluster([StatefulSets()])
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": "default"},
        "spec": {"hard": {"persistentvolumeclaims": "0"}},
        "status": {"hard": {"persistentvolumeclaims": "0"}, "used": {"persistentvolumeclaims": "0"}},
    }
    cluster.store.create(quota)
    cluster.store.update(quota, with_status=True)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": {"name": "data"}, "spec": spec}
    cluster.store.create(workload("StatefulSet", replicas=1, serviceName="web", volumeClaimTemplates=[template]))
    cluster.rest(20)
    assert cluster.pods() == []
    (_, of_claim), (_, of_pod) = failures(cluster)
    assert of_claim.startswith("Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: ")
    assert of_pod.startswith("Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: ")
    cluster.store.delete("ResourceQuota", "default", "none")
    cluster.rest()
    assert [pod.name for pod in cluster.pods()] == ["web-0"]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_deleting_a_stateful_set_takes_pods_and_revisions_along(propagation: Any) -> None:
    cluster = StatefulCluster()
    cluster.store.delete("StatefulSet", "default", "web", propagation=propagation)
    cluster.rest()
    assert cluster.pods() == []
    assert list(cluster.store.list("StatefulSet")) == []
    assert list(cluster.store.list("ControllerRevision")) == []


def test_a_stateful_set_that_waits_for_its_pods_to_end_makes_no_revision_and_says_how_many_there_are() -> None:
    cluster = StatefulCluster()
    cluster.patch("Pod", "web-2", {"metadata": {"finalizers": ["example.com/wait"]}})
    cluster.store.delete("StatefulSet", "default", "web", propagation="Foreground")
    cluster.rest()
    assert cluster.names() == ["web-2"]
    assert cluster.set.status["replicas"] == 1
    assert list(cluster.store.list("ControllerRevision")) == []


def test_a_pod_that_its_kubelet_refuses_again_and_again_is_replaced_ever_less_often() -> None:
    cluster = WorkloadCluster([StatefulSets()])
    raw = workload("StatefulSet", replicas=1, serviceName="web")
    containers = raw["spec"]["template"]["spec"]["containers"]
    raw["spec"]["template"]["spec"]["nodeName"] = "n0"
    containers[0]["resources"] = {"requests": {"cpu": "100"}}
    cluster.store.create(raw)
    start = cluster.clock.now
    seen: dict[str, float] = {}
    while len(seen) < 6:
        if not cluster.step():
            due = cluster.runner.next_deadline
            assert due is not None
            cluster.clock.now = due
        for pod in cluster.pods():
            seen.setdefault(pod.uid, cluster.clock.now - start)
    # The first replacement is created in the same round as the first pod, so it is not seen here.
    assert list(seen.values()) == [0, 1, 3, 7, 15, 31]


@pytest.mark.parametrize(("version", "stored", "terminating"), [("1.36", None, 1), ("1.37", 2, 2)])
def test_the_release_decides_whether_a_rolling_update_replaces_several_pods(
    version: str, stored: int | None, terminating: int, tmp_path: Path
) -> None:
    cluster = ScenarioCluster(tmp_path, version=kube_version(version))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"pods": "9"}}}
    raw = workload("StatefulSet", replicas=4, serviceName="web")
    raw["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    cluster.do("apply", json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, raw]}))
    cluster.do("rest", "")
    name = raw["metadata"]["name"]
    found = json.loads(cluster.do(f"get statefulset {name} -o json", ""))
    assert found["spec"]["updateStrategy"]["rollingUpdate"].get("maxUnavailable") == stored
    container = raw["spec"]["template"]["spec"]["containers"][0]["name"]
    cluster.do(f"set image statefulset/{name} {container}=other", "")
    assert cluster.do("get pods --no-headers", "").count("Terminating") == terminating
