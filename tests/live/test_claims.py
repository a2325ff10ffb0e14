"""Tests of the claims of a real cluster: a write must contain the object's version in that cluster."""

from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.asking import pod
from tests.live.real_cluster import Real, bound, real_cluster, scheduler_of
from tests.live.test_mirror import until

Raw = dict[str, Any]


def storage_class(provisioner: str) -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume_claim() -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "late",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def volume() -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk", "annotations": {"of": "somebody else"}},
        "spec": {
            "storageClassName": "late",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "2Gi"},
            "csi": {"driver": "csi.example.com", "volumeHandle": "disk"},
        },
    }


def with_volume(name: str) -> Raw:
    made = pod(name)
    made["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return made


async def test_a_claim_that_waits_for_its_pod_is_provisioned_there(tmp_path: Path) -> None:
    async with real_cluster() as real, scheduler_of(tmp_path, real.port):
        for made in (storage_class("example.com/csi"), volume_claim(), with_volume("a")):
            await real.cluster.store.create(made)
        await bound(real, "a")
        claim = await real.cluster.store.get("PersistentVolumeClaim", "default", "data")
        assert claim.annotations["volume.kubernetes.io/selected-node"] == "n1"
        assert claim.status["phase"] == "Bound"


async def test_a_volume_that_is_there_is_bound_to_the_claim(tmp_path: Path) -> None:
    async with real_cluster() as real, scheduler_of(tmp_path, real.port):
        for made in (storage_class("kubernetes.io/no-provisioner"), volume(), volume_claim(), with_volume("a")):
            await real.cluster.store.create(made)
        await bound(real, "a")
        claim = await real.cluster.store.get("PersistentVolumeClaim", "default", "data")
        disk = await real.cluster.store.get("PersistentVolume", "", "disk")
        assert claim.spec["volumeName"] == "disk"
        assert disk.spec["claimRef"]["uid"] == claim.uid
        assert disk.annotations["of"] == "somebody else"


def device_class() -> Raw:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}


def resource_slice(devices: int) -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "n1-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        },
    }


def resource_claim(name: str) -> Raw:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }


def with_device(name: str, claim: str) -> Raw:
    made = pod(name)
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    return made


async def allocated(real: Real, name: str) -> Raw:
    return dict((await real.cluster.store.get("ResourceClaim", "default", name)).status)


async def test_devices_are_allocated_there(tmp_path: Path) -> None:
    async with real_cluster() as real, scheduler_of(tmp_path, real.port):
        for made in (device_class(), resource_slice(1), resource_claim("one"), with_device("a", "one")):
            await real.cluster.store.create(made)
        await bound(real, "a")
        status = await allocated(real, "one")
        assert [found["device"] for found in status["allocation"]["devices"]["results"]] == ["gpu-0"]
        assert [each["name"] for each in status["reservedFor"]] == ["a"]


async def test_pods_that_share_a_claim_are_all_reserved_for(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(8)]
    async with real_cluster() as real, scheduler_of(tmp_path, real.port):
        for made in (device_class(), resource_slice(1), resource_claim("one")):
            await real.cluster.store.create(made)
        for name in names:
            await real.cluster.store.create(with_device(name, "one"))
        await bound(real, *names)
        assert sorted(each["name"] for each in (await allocated(real, "one"))["reservedFor"]) == names


@pytest.mark.parametrize("field", ["allocation", "reservedFor"])
async def test_what_others_write_of_a_claim_meanwhile_is_not_lost(tmp_path: Path, field: str) -> None:
    """Another client adds a finalizer and a label while this scheduler allocates."""
    async with real_cluster() as real, scheduler_of(tmp_path, real.port):
        for made in (device_class(), resource_slice(1), resource_claim("one")):
            await real.cluster.store.create(made)
        await real.cluster.store.create(with_device("a", "one"))
        for number in range(20):
            patch = {"metadata": {"labels": {"n": str(number)}}}
            await real.cluster.store.patch("ResourceClaim", "default", "one", patch)
        await bound(real, "a")
        claim = await real.cluster.store.get("ResourceClaim", "default", "one")
        assert claim.labels["n"] == "19"
        assert claim.status[field]


async def test_a_device_that_is_wanted_twice_is_given_once(tmp_path: Path) -> None:
    async with real_cluster() as real, scheduler_of(tmp_path, real.port):
        for made in (device_class(), resource_slice(1), resource_claim("one"), resource_claim("two")):
            await real.cluster.store.create(made)
        await real.cluster.store.create(with_device("a", "one"))
        await bound(real, "a")
        waits = with_device("b", "two")
        await real.cluster.store.create(waits)

        async def is_told() -> bool:
            return bool((await real.pod("b")).status.get("conditions"))

        await until(is_told)
        assert "allocation" not in await allocated(real, "two")
        gone = await real.cluster.store.get("Pod", "default", "a")
        await real.cluster.store.delete("Pod", "default", "a", uid=gone.uid, grace_period_s=0)
        await bound(real, "b")
        assert (await allocated(real, "two"))["allocation"]
