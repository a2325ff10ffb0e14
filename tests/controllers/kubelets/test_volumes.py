"""Tests of pods that wait on their node for missing volumes and claims, and of the resulting Events."""

from typing import Any

from tests.controllers.kubelets.cluster import KubeletCluster

Raw = dict[str, Any]

USES = {
    "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}],
    "containers": [{"name": "app", "image": "a:1", "volumeMounts": [{"name": "d", "mountPath": "/data"}]}],
}
ONE = "Unable to attach or mount volumes: unmounted volumes=[d], unattached volumes=[], failed to process volumes=[d]: "


def _claim(**status: Any) -> Raw:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "disk"}
    meta = {"name": "data", "namespace": "default", "uid": "claim"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": status}


def _volume() -> Raw:
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/disk"}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk", "uid": "disk"}, "spec": spec}


def _events(cluster: KubeletCluster) -> list[tuple[str, str]]:
    events = sorted(cluster.store.list("Event"), key=lambda one: int(one.metadata["resourceVersion"]))
    return [(one.raw["reason"], one.raw["message"]) for one in events]


def _bind(cluster: KubeletCluster) -> None:
    cluster.store.merge_patch(
        "PersistentVolumeClaim", "default", "data", {"status": {"phase": "Bound"}}, subresource="status"
    )
    cluster.run_until_idle()


def test_a_pod_waits_for_its_claim_and_then_for_the_claims_volume() -> None:
    cluster = KubeletCluster()
    cluster.run("web", **USES)
    cluster.run_until_idle()
    assert cluster.pod().phase == "Pending"
    missing = 'failed to fetch PVC from API server: persistentvolumeclaims "data" not found'
    assert _events(cluster) == [("FailedMount", f"{ONE}error processing PVC default/data: {missing}")]
    cluster.store.create(_claim())
    cluster.run_until_idle()
    assert _events(cluster)[-1][1] == f"{ONE}error processing PVC default/data: PVC is not bound"
    _bind(cluster)
    assert 'persistentvolumes "disk" not found' in _events(cluster)[-1][1]
    assert cluster.pod().phase == "Pending"
    cluster.store.create(_volume())
    cluster.run_until_idle()
    assert cluster.pod().phase == "Running"
    assert len(_events(cluster)) == 3


def test_a_volume_that_no_container_mounts_is_not_waited_for() -> None:
    cluster = KubeletCluster()
    cluster.run("web", volumes=USES["volumes"])
    cluster.run_until_idle()
    assert cluster.pod().phase == "Running"


def test_a_pod_that_waits_counts_on_its_node_and_goes_at_once_when_it_is_deleted() -> None:
    cluster = KubeletCluster()
    cluster.run("web", cpu="4", volumes=USES["volumes"], containers=_asking("4"))
    cluster.run("late", cpu="1")
    cluster.run_until_idle()
    assert (cluster.pod().phase, cluster.pod("late").phase) == ("Pending", "Failed")
    cluster.store.delete("Pod", "default", "web")
    cluster.run_until_idle()
    assert cluster.store.find("Pod", "default", "web") is None


def _asking(cpu: str) -> list[Raw]:
    return [{**USES["containers"][0], "resources": {"requests": {"cpu": cpu}}}]


def test_pods_with_a_run_of_their_own_wait_as_well() -> None:
    cluster = KubeletCluster()
    cluster.run("web", {"run-seconds": "5"}, restartPolicy="Never", **USES)
    cluster.until(60)
    assert cluster.pod().phase == "Pending"
    cluster.store.create(_volume())
    cluster.store.create(_claim())
    _bind(cluster)
    assert cluster.pod().phase == "Running"
    cluster.until(66)
    assert cluster.pod().phase == "Succeeded"


def test_a_pod_waits_for_a_resource_claim_that_is_reserved_for_it() -> None:
    cluster = KubeletCluster()
    cluster.run("web", resourceClaims=[{"name": "gpu", "resourceClaimName": "card"}])
    cluster.run_until_idle()
    why = 'failed to fetch ResourceClaim card referenced by pod web: resourceclaims.resource.k8s.io "card" not found'
    assert _events(cluster) == [("FailedPrepareDynamicResources", f"Failed to prepare dynamic resources: {why}")]
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    meta = {"name": "card", "namespace": "default"}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta}
    cluster.store.create({**claim, "spec": {"devices": {"requests": requests}}})
    cluster.run_until_idle()
    assert "is not allowed to use ResourceClaim card" in _events(cluster)[-1][1]
    results = [{"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "g0"}]
    users = [{"resource": "pods", "name": "web", "uid": cluster.pod().uid}]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
    cluster.store.merge_patch("ResourceClaim", "default", "card", {"status": status}, subresource="status")
    cluster.run_until_idle()
    assert cluster.pod().phase == "Running"
