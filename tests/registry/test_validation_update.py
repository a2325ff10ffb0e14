"""Tests of immutable and mutable fields."""

from typing import Any

import pytest

from kschedd.registry.validation import default_and_validate, validate_updated
from kschedd.registry.validation_update import validate_update
from tests.api.objects import Raw, named, pod, workload


def answer(old: Raw, new: Raw) -> list[str]:
    return [str(fault) for fault in validate_update(default_and_validate(old).raw, default_and_validate(new).raw)]


def claim(phase: str = "Pending", storage: str = "1Gi", **spec: Any) -> Raw:
    status = {"phase": phase, "capacity": {"storage": "2Gi"}} if phase == "Bound" else {"phase": phase}
    return named(
        "PersistentVolumeClaim",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **spec},
        status=status,
    )


def volume(**spec: Any) -> Raw:
    csi = {"driver": "d", "volumeHandle": "h"}
    return named("PersistentVolume", spec={"capacity": {"storage": "1Gi"}, "csi": csi, **spec})


def job(parallelism: int = 1, image: str = "a", **spec: Any) -> Raw:
    template = {"spec": {"containers": [{"name": "c", "image": image}], "restartPolicy": "Never"}}
    return named("Job", "batch/v1", spec={"parallelism": parallelism, "template": template, **spec})


def directed(raw: Raw) -> Raw:
    """Return the Job with scheduling directives in its template."""
    pod = raw["spec"]["template"]["spec"]
    raw["spec"]["template"]["spec"] = {**pod, "nodeSelector": {"a": "b"}, "affinity": {"nodeAffinity": {}}}
    return raw


def slice_(**spec: Any) -> Raw:
    pool = {"name": "p", "resourceSliceCount": 1}
    return named("ResourceSlice", "resource.k8s.io/v1", spec={"driver": "d", "pool": pool, "nodeName": "n", **spec})


def device_claim(spec: Raw) -> Raw:
    return named("ResourceClaim", "resource.k8s.io/v1", spec=spec)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            workload("Deployment"),
            workload("Deployment", selector={"matchLabels": {"app": "b"}}),
            'spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable',
        ),
        (
            workload("StatefulSet", serviceName="a"),
            workload("StatefulSet", serviceName="b"),
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', ",
        ),
        (
            named("PriorityClass", "scheduling.k8s.io/v1", value=1),
            named("PriorityClass", "scheduling.k8s.io/v1", value=2),
            "value: Forbidden: may not be changed in an update.",
        ),
        (
            claim(storageClassName="a"),
            claim(storageClassName="b"),
            "spec: Forbidden: spec is immutable after creation except resources.requests",
        ),
        (claim(), claim(storage="2Gi"), "spec: Forbidden: spec is immutable after creation"),
        (claim(volumeName="v"), claim(volumeName="w"), "spec: Forbidden: spec is immutable after creation"),
        (
            claim("Bound", "2Gi", volumeName="v"),
            claim("Bound", "1Gi", volumeName="v"),
            "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity",
        ),
        (volume(), volume(csi={"driver": "d", "volumeHandle": "i"}), "spec.persistentvolumesource: Forbidden"),
        (volume(volumeMode="Block"), volume(), 'volumeMode: Invalid value: "Filesystem": field is immutable'),
        (job(), job(image="b"), "spec.template: Invalid value"),
        (job(suspend=True), job(suspend=True, image="b"), "spec.template: Invalid value"),
        (job(), directed(job()), "spec.template: Invalid value"),
        (job(completions=1), job(completions=2), "spec.completions: Invalid value: 2: field is immutable"),
        (slice_(), slice_(nodeName="m"), 'spec.nodeName: Invalid value: "m": field is immutable'),
        (slice_(), slice_(nodeName=None), "spec.nodeName: Invalid value: null: field is immutable"),
        (
            named("RuntimeClass", "node.k8s.io/v1", handler="h"),
            named("RuntimeClass", "node.k8s.io/v1"),
            'handler: Invalid value: "": field is immutable',
        ),
        (
            named("ResourceQuota", spec={"scopes": ["BestEffort"]}),
            named("ResourceQuota", spec={"scopes": []}),
            "spec.scopes: Invalid value: []: field is immutable",
        ),
        (
            named("ResourceQuota", spec={"scopes": ["BestEffort"]}),
            named("ResourceQuota", spec={}),
            "spec.scopes: Invalid value: null: field is immutable",
        ),
    ],
)
def test_fixed(old: Raw, new: Raw, fault: str) -> None:
    (found,) = answer(old, new)
    assert found.startswith(fault)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (workload("Deployment"), workload("Deployment", replicas=3)),
        (workload("StatefulSet"), workload("StatefulSet", replicas=3)),
        (claim(), claim("Bound", volumeName="v")),
        (claim(), claim(storageClassName="standard")),
        (claim("Bound", "1Gi", volumeName="v"), claim("Bound", "2Gi", volumeName="v")),
        (volume(), volume(claimRef={"name": "c", "namespace": "d"})),
        (volume(), volume(nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": []}]}})),
        (job(), job(parallelism=3)),
        (job(suspend=True), directed(job(suspend=True))),
        (slice_(), slice_(devices=[{"name": "gpu"}])),
        (claim(volumeAttributesClassName=""), claim(volumeAttributesClassName="")),
        (device_claim({}), device_claim({"devices": {"requests": []}})),
        (directed(job()), directed(job())),
        (pod(), pod(nodeName="n")),
        (named("Widget", "example.com/v1", spec=1), named("Widget", "example.com/v1", spec=2)),
    ],
    ids=lambda raw: str(raw["kind"]),
)
def test_free(old: Raw, new: Raw) -> None:
    assert answer(old, new) == []


def test_parameters_that_are_empty_are_not_those_that_are_left_out() -> None:
    item = named("StorageClass", "storage.k8s.io/v1", provisioner="p")
    assert answer(item, item) == []
    assert answer(item, {**item, "parameters": {}}) == ["parameters: Forbidden: updates to parameters are forbidden."]


def test_a_revision_has_data_for_good() -> None:
    def revision(number: int = 1, **parts: Any) -> Raw:
        return named("ControllerRevision", "apps/v1", revision=number, **parts)

    assert [str(fault) for fault in default_and_validate(revision(-1)).faults] == [
        "revision: Invalid value: -1: must be greater than or equal to 0",
        "data: Required value: data is mandatory",
    ]
    assert answer(revision(data={"a": {"b": 1}}), revision(2, data={"a": {"b": 1}})) == []
    (fault,) = answer(revision(data={"a": {"b": 1}}), revision(data={"a": {"b": 2}}))
    assert fault.startswith("data: Invalid value: ")
    assert fault.endswith("field is immutable")


def test_the_sources_of_a_volume_are_compared_as_go_prints_them() -> None:
    meta, sources = {"name": "a"}, ({"hostPath": {"path": "/x", "type": ""}}, {"nfs": {"server": "s", "path": "/p"}})
    old, new = ({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec} for spec in sources)
    assert [str(fault) for fault in validate_update(old, new)] == [
        """spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation
@@ -1,12 +1,13 @@
 {
  "GCEPersistentDisk": null,
  "AWSElasticBlockStore": null,
- "HostPath": {
-  "Path": "/x",
-  "Type": ""
+ "HostPath": null,
+ "Glusterfs": null,
+ "NFS": {
+  "Server": "s",
+  "Path": "/p",
+  "ReadOnly": false
  },
- "Glusterfs": null,
- "NFS": null,
  "RBD": null,
  "Quobyte": null,
  "ISCSI": null,
"""
    ]


@pytest.mark.parametrize(
    ("kind", "api_version", "reported"),
    [
        ("Service", "v1", 3),
        ("Endpoints", "v1", 4),
        ("ControllerRevision", "apps/v1", 4),
        ("NetworkPolicy", "networking.k8s.io/v1", 4),
        ("Role", "rbac.authorization.k8s.io/v1", 5),
        ("ClusterRoleBinding", "rbac.authorization.k8s.io/v1", 5),
    ],
)
def test_a_fault_is_told_as_often_as_the_server_finds_it(kind: str, api_version: str, reported: int) -> None:
    meta = {"name": "a", "namespace": "default", "labels": {"a": "Not Valid!"}}
    found = validate_updated({"apiVersion": api_version, "kind": kind, "metadata": meta}, [])
    assert sum(fault.path == "metadata.labels" for fault in found) == reported
