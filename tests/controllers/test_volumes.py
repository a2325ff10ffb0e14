"""Tests of the volume controller, the provisioner and the ephemeral volume controller with a store."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.storage.ephemeral import EphemeralVolumes
from kschedd.controllers.storage.protection import StorageProtection
from kschedd.controllers.storage.provisioner import Provisioner
from kschedd.controllers.storage.volumes import VolumeController
from kschedd.storage.claims import BIND_COMPLETED, SELECTED_NODE
from kschedd.store.store import Store


class SchedulerCache:
    """A store with the controllers of volumes, in virtual time."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.store = Store(now=lambda: self.now)
        controllers: list[Controller] = [VolumeController(), StorageProtection()]
        controllers += [Provisioner(delay_s=5.0), EphemeralVolumes()]
        self.settling = ControllerRunner(self.store, controllers)

    def create(self, *raws: dict[str, Any]) -> None:
        for raw in raws:
            self.store.create(raw)
        self.settling.run_until_idle()

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.settling.run_until_idle()

    def patch(self, kind: str, namespace: str, name: str, patch: dict[str, Any]) -> None:
        self.store.merge_patch(kind, namespace, name, patch)
        self.settling.run_until_idle()

    def delete(self, kind: str, namespace: str, name: str) -> None:
        self.store.delete(kind, namespace, name)
        self.settling.run_until_idle()

    def claim(self, name: str = "data") -> Object:
        return self.store.get("PersistentVolumeClaim", "default", name)

    def volume(self, name: str) -> Object:
        return self.store.get("PersistentVolume", "", name)

    def messages(self) -> list[str]:
        return [event.raw["message"] for event in self.store.list("Event")]


@pytest.fixture
def cluster() -> SchedulerCache:
    return SchedulerCache()


def storage_class(
    name: str, *, waits: bool = False, provisioner: str = "csi.example.com", **more: Any
) -> dict[str, Any]:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    meta = {"name": name, "annotations": more.pop("annotations", {})}
    base = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta}
    return {**base, "provisioner": provisioner, "volumeBindingMode": mode, **more}


def claim(name: str = "data", storage_class: str = "manual", size: str = "5Gi", **spec: Any) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    meta = {"name": name, "namespace": "default"}
    wanted = {**wanted, "storageClassName": storage_class, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": wanted}


def volume(name: str, size: str = "10Gi", **spec: Any) -> dict[str, Any]:
    base = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "manual"}
    base |= {"hostPath": {"path": f"/srv/{name}"}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {**base, **spec}}


def node(name: str, zone: str) -> dict[str, Any]:
    labels = {"topology.kubernetes.io/zone": zone}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def test_immediate_claim_gets_the_smallest_volume_that_will_do(cluster: SchedulerCache) -> None:
    cluster.create(volume("large", "100Gi"), volume("fits", "6Gi"), volume("small", "1Gi"), claim())
    bound = cluster.claim()
    assert bound.spec["volumeName"] == "fits"
    assert BIND_COMPLETED in bound.annotations
    assert bound.status == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "6Gi"}}
    assert cluster.volume("fits").status["phase"] == "Bound"
    assert cluster.volume("fits").spec["claimRef"]["uid"] == bound.uid
    assert cluster.volume("large").status["phase"] == "Available"


def test_a_volume_that_can_do_less_is_taken_before_one_that_can_do_more(cluster: SchedulerCache) -> None:
    both = ["ReadWriteOnce", "ReadWriteMany"]
    cluster.create(volume("versatile", "5Gi", accessModes=both), volume("plain", "9Gi"), claim())
    assert cluster.claim().spec["volumeName"] == "plain"


def test_two_claims_never_share_a_volume(cluster: SchedulerCache) -> None:
    cluster.store.create(claim("one"))
    cluster.store.create(claim("two"))
    cluster.create(volume("only"))
    phases = sorted(cluster.claim(name).status["phase"] for name in ("one", "two"))
    assert phases == ["Bound", "Pending"]
    cluster.create(volume("another"))
    assert {cluster.claim(name).spec["volumeName"] for name in ("one", "two")} == {"only", "another"}


def test_volume_reserved_by_name_goes_to_that_claim_only(cluster: SchedulerCache) -> None:
    ref = {"namespace": "default", "name": "data"}
    cluster.create(volume("reserved", "50Gi", claimRef=ref), volume("free", "5Gi"), claim("other"), claim())
    assert cluster.claim().spec["volumeName"] == "reserved"
    assert cluster.claim("other").spec["volumeName"] == "free"


def test_claim_that_names_a_volume_waits_for_it(cluster: SchedulerCache) -> None:
    cluster.create(claim(volumeName="mine"), volume("free"))
    assert cluster.claim().status["phase"] == "Pending"
    cluster.create(volume("mine"))
    assert cluster.claim().status["phase"] == "Bound"
    assert cluster.volume("free").status["phase"] == "Available"


def test_claim_that_names_a_volume_too_small_is_told_so(cluster: SchedulerCache) -> None:
    cluster.create(volume("mine", "1Gi"), claim(volumeName="mine"))
    assert cluster.claim().status["phase"] == "Pending"
    assert cluster.messages() == ['Cannot bind to requested volume "mine": requested PV is too small']


def test_claim_without_class_or_volume_is_told_so_once(cluster: SchedulerCache) -> None:
    cluster.create(claim(storage_class=""), claim("later", storage_class=""))
    cluster.patch("PersistentVolumeClaim", "default", "data", {"metadata": {"labels": {"a": "b"}}})
    why = "no persistent volumes available for this claim and no storage class is set"
    assert cluster.messages() == [why, why]


def test_immediate_claim_is_provisioned_after_the_delay(cluster: SchedulerCache) -> None:
    cluster.create(storage_class("fast"), claim(storage_class="fast"))
    cluster.advance(4.9)
    assert cluster.claim().status["phase"] == "Pending"
    cluster.advance(0.1)
    bound = cluster.claim()
    assert bound.status["phase"] == "Bound"
    assert bound.spec["volumeName"] == f"pvc-{bound.uid}"
    made = cluster.volume(f"pvc-{bound.uid}")
    assert made.status["phase"] == "Bound"
    assert made.spec["csi"]["driver"] == "csi.example.com"
    assert made.spec["persistentVolumeReclaimPolicy"] == "Delete"
    assert "nodeAffinity" not in made.spec


def test_waiting_claim_is_provisioned_where_its_pod_went(cluster: SchedulerCache) -> None:
    cluster.create(storage_class("local", waits=True), node("n1", "zone-b"), claim(storage_class="local"))
    cluster.advance(60)
    assert cluster.claim().status["phase"] == "Pending"
    assert cluster.messages() == ["waiting for first consumer to be created before binding"]
    cluster.patch("PersistentVolumeClaim", "default", "data", {"metadata": {"annotations": {SELECTED_NODE: "n1"}}})
    cluster.advance(5)
    made = cluster.volume(cluster.claim().spec["volumeName"])
    (term,) = made.spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-b"]}]
    assert cluster.claim().annotations[SELECTED_NODE] == "n1"


def test_waiting_claim_takes_no_free_volume_of_itself(cluster: SchedulerCache) -> None:
    cluster.create(storage_class("manual", waits=True, provisioner="kubernetes.io/no-provisioner"), volume("free"))
    cluster.create(claim())
    assert cluster.claim().status["phase"] == "Pending"
    cluster.patch("PersistentVolume", "", "free", {"spec": {"claimRef": {"namespace": "default", "name": "data"}}})
    assert cluster.claim().status["phase"] == "Bound"


def test_class_may_say_how_long_provisioning_takes(cluster: SchedulerCache) -> None:
    never = storage_class("never", annotations={"kschedd.io/provision-seconds": "never"})
    quick = storage_class("quick", annotations={"kschedd.io/provision-seconds": "0"})
    cluster.create(never, quick, claim("a", storage_class="never"), claim("b", storage_class="quick"))
    assert cluster.claim("b").status["phase"] == "Bound"
    cluster.advance(10_000)
    assert cluster.claim("a").status["phase"] == "Pending"
    assert cluster.settling.next_deadline is None


def test_failing_provisioner_gives_the_chosen_node_back(cluster: SchedulerCache) -> None:
    broken = storage_class("broken", waits=True, annotations={"kschedd.io/provision-fails": "true"})
    cluster.create(broken, node("n1", "zone-a"), claim(storage_class="broken"))
    cluster.patch("PersistentVolumeClaim", "default", "data", {"metadata": {"annotations": {SELECTED_NODE: "n1"}}})
    cluster.advance(5)
    assert SELECTED_NODE not in cluster.claim().annotations
    assert cluster.claim().status["phase"] == "Pending"


def test_provisioning_for_a_node_that_went_gives_it_back(cluster: SchedulerCache) -> None:
    cluster.create(storage_class("local", waits=True), claim(storage_class="local"))
    cluster.patch("PersistentVolumeClaim", "default", "data", {"metadata": {"annotations": {SELECTED_NODE: "gone"}}})
    cluster.advance(5)
    assert SELECTED_NODE not in cluster.claim().annotations


def test_claim_deleted_before_its_volume_is_made_gets_none(cluster: SchedulerCache) -> None:
    cluster.create(storage_class("fast"), claim(storage_class="fast"))
    cluster.delete("PersistentVolumeClaim", "default", "data")
    cluster.advance(60)
    assert list(cluster.store.list("PersistentVolume")) == []


def test_deleting_a_claim_deletes_its_provisioned_volume(cluster: SchedulerCache) -> None:
    cluster.create(storage_class("fast"), claim(storage_class="fast"))
    cluster.advance(5)
    cluster.delete("PersistentVolumeClaim", "default", "data")
    assert list(cluster.store.list("PersistentVolume")) == []


@pytest.mark.parametrize(("policy", "phase"), [("Retain", "Released"), ("Recycle", "Available")])
def test_deleting_a_claim_releases_its_volume(cluster: SchedulerCache, policy: str, phase: str) -> None:
    cluster.create(volume("kept", persistentVolumeReclaimPolicy=policy), claim())
    cluster.delete("PersistentVolumeClaim", "default", "data")
    assert cluster.volume("kept").status["phase"] == phase
    cluster.create(claim("next"))
    assert cluster.claim("next").status["phase"] == ("Bound" if policy == "Recycle" else "Pending")


def test_a_volume_that_was_deleted_while_it_was_bound_goes_with_its_claim(cluster: SchedulerCache) -> None:
    cluster.create(volume("kept", persistentVolumeReclaimPolicy="Retain"), claim())
    cluster.delete("PersistentVolume", "", "kept")
    assert cluster.volume("kept").deleting
    cluster.delete("PersistentVolumeClaim", "default", "data")
    assert cluster.store.find("PersistentVolume", "", "kept") is None


def test_claim_whose_volume_is_gone_is_lost(cluster: SchedulerCache) -> None:
    cluster.create(volume("short-lived"))
    cluster.create(claim())
    cluster.delete("PersistentVolume", "", "short-lived")
    assert cluster.claim().status["phase"] == "Bound", "a bound volume is protected"
    cluster.patch("PersistentVolume", "", "short-lived", {"metadata": {"finalizers": None}})
    lost = cluster.claim()
    assert lost.status == {"phase": "Lost"}
    assert cluster.messages() == ["Bound claim has lost its PersistentVolume. Data on the volume is lost!"]


def test_ephemeral_volume_gets_a_claim_owned_by_its_pod(cluster: SchedulerCache) -> None:
    template = {"metadata": {"labels": {"of": "scratch"}}, "spec": claim(storage_class="fast")["spec"]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}],
        },
    }
    cluster.create(storage_class("fast"), pod)
    made = cluster.claim("worker-scratch")
    owner = made.owner
    assert owner is not None
    assert owner.uid == cluster.store.get("Pod", "default", "worker").uid
    assert made.labels == {"of": "scratch"}
    cluster.delete("PersistentVolumeClaim", "default", "worker-scratch")
    assert cluster.claim("worker-scratch").uid != made.uid


def test_topology_keys_of_the_driver_count_before_the_zone(cluster: SchedulerCache) -> None:
    csi = {"name": "csi.example.com", "nodeID": "x", "topologyKeys": ["kubernetes.io/hostname"]}
    csi_node = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"}}
    host = node("n1", "zone-a")
    host["metadata"]["labels"]["kubernetes.io/hostname"] = "n1"
    cluster.create(storage_class("local", waits=True), host, {**csi_node, "spec": {"drivers": [csi]}})
    cluster.create(claim(storage_class="local"))
    cluster.patch("PersistentVolumeClaim", "default", "data", {"metadata": {"annotations": {SELECTED_NODE: "n1"}}})
    cluster.advance(5)
    made = cluster.volume(cluster.claim().spec["volumeName"])
    (term,) = made.spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert [e["key"] for e in term["matchExpressions"]] == ["kubernetes.io/hostname"]


DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def classless(name: str = "data") -> dict[str, Any]:
    raw = claim(name)
    del raw["spec"]["storageClassName"]
    return raw


def test_a_claim_that_leaves_its_class_open_gets_the_default_one(cluster: SchedulerCache) -> None:
    cluster.create(storage_class("plain"), storage_class("usual", annotations=DEFAULT), classless())
    assert cluster.claim().spec["storageClassName"] == "usual"
    cluster.advance(5)
    assert cluster.claim().status["phase"] == "Bound"


def test_a_class_that_becomes_the_default_later_is_given_to_claims_that_wait(cluster: SchedulerCache) -> None:
    cluster.create(classless(), storage_class("usual"))
    assert "storageClassName" not in cluster.claim().spec
    cluster.patch("StorageClass", "", "usual", {"metadata": {"annotations": DEFAULT}})
    assert cluster.claim().spec["storageClassName"] == "usual"


def test_of_several_default_classes_the_newest_is_taken(cluster: SchedulerCache) -> None:
    cluster.create(storage_class("b", annotations=DEFAULT))
    cluster.now += 10
    cluster.create(storage_class("d", annotations=DEFAULT), storage_class("c", annotations=DEFAULT), classless())
    assert cluster.claim().spec["storageClassName"] == "c"


def test_a_claim_that_wants_no_class_gets_none(cluster: SchedulerCache) -> None:
    cluster.create(storage_class("usual", annotations=DEFAULT), claim(storage_class=""))
    assert cluster.claim().spec["storageClassName"] == ""
    assert cluster.claim().status["phase"] == "Pending"


def test_a_class_of_attributes_goes_when_no_claim_and_no_volume_has_it(cluster: SchedulerCache) -> None:
    base = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "driverName": "d.io"}
    for name in ("gold", "silver", "unused"):
        cluster.create({**base, "metadata": {"name": name}, "parameters": {"iops": "1"}})
    cluster.create(claim(volumeAttributesClassName="gold"))
    driven = {"hostPath": None, "csi": {"driver": "d.io", "volumeHandle": "h"}}
    cluster.create(volume("v", volumeAttributesClassName="silver", **driven))
    for name in ("gold", "silver", "unused"):
        cluster.delete("VolumeAttributesClass", "", name)

    def left() -> list[str]:
        return sorted(found.name for found in cluster.store.list("VolumeAttributesClass"))

    assert left() == ["gold", "silver"]
    cluster.delete("PersistentVolumeClaim", "default", "data")
    assert left() == ["silver"]
    cluster.delete("PersistentVolume", "", "v")
    assert left() == []
