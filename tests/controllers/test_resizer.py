"""Tests of claims whose request grows: the resizer, and the file systems that kubelets enlarge."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.storage.provisioner import Provisioner
from kschedd.controllers.storage.resizer import VolumeResizer
from kschedd.controllers.storage.volumes import VolumeController
from kschedd.store.store import Store
from tests.store.manifests import Clock, node, pod

CLAIM = "PersistentVolumeClaim"
CLASS = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}


class VolumeCluster:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store = Store(now=self.clock)
        controllers = (VolumeController(), Provisioner(0.0), VolumeResizer(), Kubelets())
        self.runner = ControllerRunner(self.store, controllers)
        self.create(node(), {**CLASS, "provisioner": "csi.example.com", "allowVolumeExpansion": True})

    def create(self, *raws: dict[str, Any]) -> None:
        for raw in raws:
            self.store.create(raw)
            self.runner.run_until_idle()
        assert not self.runner.faults()

    def claim(self, name: str = "data", **spec: Any) -> None:
        base = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
        base["resources"] = {"requests": {"storage": "2Gi"}}
        meta = {"name": name, "namespace": "default"}
        self.create({"apiVersion": "v1", "kind": CLAIM, "metadata": meta, "spec": {**base, **spec}})

    def ask_for(self, size: str, name: str = "data") -> None:
        patch = {"spec": {"resources": {"requests": {"storage": size}}}}
        self.store.merge_patch(CLAIM, "default", name, patch)
        self.runner.run_until_idle()

    def mount(self) -> None:
        mounts = [{"name": "v", "mountPath": "/v"}]
        raw = pod("web", containers=[{"name": "app", "image": "a:1", "volumeMounts": mounts}])
        raw["spec"] |= {
            "nodeName": "node-1",
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        }
        self.create(raw)

    def found(self, name: str = "data") -> Object:
        return self.store.get(CLAIM, "default", name)

    def volume_size(self, name: str = "data") -> str:
        size: str = self.store.get("PersistentVolume", "", self.found(name).spec["volumeName"]).spec["capacity"][
            "storage"
        ]
        return size

    def reasons(self) -> set[str]:
        return {event.raw["reason"] for event in self.store.list("Event")}


@pytest.fixture
def cluster() -> VolumeCluster:
    return VolumeCluster()


def test_a_claim_waits_for_a_pod_after_its_volume_has_grown(cluster: VolumeCluster) -> None:
    cluster.claim()
    cluster.ask_for("4Gi")
    status = cluster.found().status
    assert cluster.volume_size() == "4Gi"
    assert (status["capacity"], status["allocatedResources"]) == ({"storage": "2Gi"}, {"storage": "4Gi"})
    assert status["allocatedResourceStatuses"] == {"storage": "NodeResizePending"}
    assert [entry["type"] for entry in status["conditions"]] == ["FileSystemResizePending"]
    cluster.ask_for("6Gi")
    assert cluster.found().status == status, "the first expansion is completed before the next one begins"
    cluster.mount()
    status = cluster.found().status
    assert (status["capacity"], status["allocatedResources"]) == ({"storage": "6Gi"}, {"storage": "6Gi"})
    assert not {"conditions", "allocatedResourceStatuses"} & status.keys()
    assert cluster.reasons() >= {"ExternalExpanding", "FileSystemResizeRequired", "FileSystemResizeSuccessful"}


def test_a_mounted_claim_grows_at_once(cluster: VolumeCluster) -> None:
    cluster.claim()
    cluster.mount()
    cluster.ask_for("4Gi")
    assert cluster.found().status["capacity"] == {"storage": "4Gi"}
    assert "conditions" not in cluster.found().status


def test_other_conditions_stay(cluster: VolumeCluster) -> None:
    cluster.claim()
    other = {"type": "ModifyingVolume", "status": "True"}
    cluster.store.merge_patch(CLAIM, "default", "data", {"status": {"conditions": [other]}}, subresource="status")
    cluster.ask_for("4Gi")
    assert len(cluster.found().status["conditions"]) == 2
    cluster.mount()
    assert [entry["type"] for entry in cluster.found().status["conditions"]] == ["ModifyingVolume"]


def test_a_block_device_needs_no_pod(cluster: VolumeCluster) -> None:
    cluster.claim(volumeMode="Block")
    cluster.ask_for("4Gi")
    assert cluster.found().status["capacity"] == {"storage": "4Gi"}
    assert "VolumeResizeSuccessful" in cluster.reasons()


def test_a_volume_without_a_csi_driver_does_not_grow(cluster: VolumeCluster) -> None:
    spec = {"capacity": {"storage": "3Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}}
    cluster.create({**volume, "spec": {**spec, "hostPath": {"path": "/disk"}}})
    cluster.claim(volumeName="disk")
    cluster.ask_for("4Gi")
    assert cluster.volume_size() == "3Gi"
    assert cluster.found().status["capacity"] == {"storage": "3Gi"}
    assert [event.raw["type"] for event in cluster.store.list("Event")] == ["Warning"]
