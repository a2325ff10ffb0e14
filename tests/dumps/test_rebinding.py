"""Tests of dumps without uids: a claim is bound to its volume anew, whatever uid the volume names."""

from typing import Any

import pytest

from tests.dumps.test_loading import _loaded


@pytest.mark.parametrize("of_volume", [{}, {"uid": "8d9ab5c0-0000-4000-8000-000000000001"}], ids=["bare", "kept"])
@pytest.mark.parametrize("of_claim", [{}, {"uid": "8d9ab5c0-0000-4000-8000-000000000002"}], ids=["by-name", "by-uid"])
def test_a_claim_without_uid_keeps_its_volume(of_volume: dict[str, Any], of_claim: dict[str, Any]) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "gp3"}
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", **of_claim}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv1", **of_volume},
        "spec": {
            **spec,
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": "d", "volumeHandle": "h"},
            "persistentVolumeReclaimPolicy": "Delete",
            "volumeMode": "Filesystem",
            "claimRef": reference,
        },
        "status": {"phase": "Bound"},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data",
            "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {**spec, "volumeName": "pv1", "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }
    store = _loaded(volume, claim).store
    bound = store.get("PersistentVolumeClaim", "default", "data")
    assert bound.status["phase"] == "Bound"
    assert store.get("PersistentVolume", "", "pv1").spec["claimRef"]["uid"] == bound.uid
