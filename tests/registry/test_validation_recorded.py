"""Tests of kschedd's messages for invalid new objects against those recorded from a kube-apiserver.

The kinds are those with their own validation here: devices, storage, workloads.
"""

import re
from collections import Counter
from typing import Any

import pytest

from kschedd.api.schemas.check import check_schema
from kschedd.api.schemas.codec import decoded_object
from kschedd.api.schemas.fields import FieldError
from kschedd.registry.defaults import default_typed
from kschedd.registry.strategy import prepare_create
from kschedd.registry.validation import validate_typed
from tests.store.recorded import records

DEVICES = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
STORAGE = ("CSIDriver", "CSINode", "CSIStorageCapacity", "PersistentVolume", "PersistentVolumeClaim", "StorageClass")
WORKLOADS = ("DaemonSet", "Deployment", "PodDisruptionBudget", "ReplicaSet", "ReplicationController", "StatefulSet")

# Messages about metadata, pods and volume sources, whose rules other modules validate, or which are cut off.
_ELSEWHERE = re.compile(
    r"""metadata | spec\.template\.spec | .*more\ than\ 1\ volume\ type | .*\.\.\. | .*must\ be\ no\ more\ than
    | spec\.(csi|nodeAffinity|nfs|glusterfs) | .*cel\.expression | .*resources\[storage\] | maximumVolumeSize""",
    re.VERBOSE,
)


def refused(kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    found = [record for record in records("create") if record["kind"] in kinds]
    return [record for record in found if record["want"]["code"] in (201, 422)]


def faults_of(kind: str, manifest: dict[str, Any]) -> list[FieldError]:
    if mistyped := check_schema(manifest):
        return mistyped
    return validate_typed(prepare_create(kind, default_typed(decoded_object(manifest)), "2025-01-01T00:00:00Z"))


@pytest.mark.parametrize("kinds", [DEVICES, STORAGE, WORKLOADS], ids=["devices", "storage", "workloads"])
def test_nothing_is_said_that_the_server_does_not_say(kinds: tuple[str, ...]) -> None:
    seen: Counter[str] = Counter()
    wrong = []
    for record in refused(kinds):
        causes = (record["want"].get("status") or {}).get("causes") or ()
        wanted = {f"{cause['field']}: {cause['message']}" for cause in causes}
        for fault in {str(fault) for fault in faults_of(record["kind"], record["manifest"])}:
            seen["alike" if fault in wanted else "other"] += 1
            if fault not in wanted and not _ELSEWHERE.match(fault):
                wrong.append(f"{record['id']}: {fault}")
    assert seen["alike"] > 30
    assert not wrong, "\n".join(wrong)
