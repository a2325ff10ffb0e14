"""Tests of every built-in kind with every verb: create, client-side and server-side apply, get, patch, delete."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.schemas.kinds import KINDS, kind_of
from kschedd.apiserver.catalogue.resources import Resource, built_in
from kschedd.scenarios.commands import ScenarioCluster
from tests.apiserver.asking import MERGE, STRATEGIC, asking
from tests.registry.certificate_requests import REQUEST

Raw = dict[str, Any]
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
TEMPLATE: Raw = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR: Raw = {"matchLabels": {"a": "b"}}
WORKLOAD: Raw = {"selector": SELECTOR, "template": TEMPLATE}
JOB: Raw = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
HOOK: Raw = {
    "name": "a.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"service": {"name": "s", "namespace": "default"}},
    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
}
CRD_NAMES = {"plural": "ws", "singular": "w", "kind": "W", "listKind": "WList"}
CRD_VERSION: Raw = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}

#: required fields of each kind in addition to name and apiVersion; `name` if the name `x` is not allowed
NEEDED: dict[str, Raw] = {
    "Namespace": {},
    "Node": {},
    "Pod": {"spec": TEMPLATE["spec"]},
    "Service": {"spec": {"ports": [{"port": 80}]}},
    "ReplicationController": {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}},
    "ResourceQuota": {"spec": {"hard": {"pods": "3"}}},
    "PersistentVolume": {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    },
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "ServiceAccount": {},
    "ConfigMap": {"data": {"a": "b"}},
    "Secret": {"stringData": {"a": "b"}},
    "Endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    "LimitRange": {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}},
    "PodTemplate": {"template": TEMPLATE},
    "Event": {"involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}},
    "ReplicaSet": {"spec": WORKLOAD},
    "StatefulSet": {"spec": {**WORKLOAD, "serviceName": "s"}},
    "Deployment": {"spec": WORKLOAD},
    "DaemonSet": {"spec": WORKLOAD},
    "ControllerRevision": {"revision": 1, "data": {"a": "b"}},
    "Job": {"spec": JOB},
    "CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}},
    "PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    "PriorityClass": {"value": 7},
    "RuntimeClass": {"handler": "h"},
    "StorageClass": {"provisioner": "example.com/p"},
    "CSINode": {"spec": {"drivers": []}},
    "CSIDriver": {"spec": {"attachRequired": False}},
    "CSIStorageCapacity": {"storageClassName": "s"},
    "VolumeAttachment": {"spec": {"attacher": "a.io", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
    "VolumeAttributesClass": {"driverName": "d.example.com", "parameters": {"iops": "10"}},
    "Lease": {"spec": {"holderIdentity": "h"}},
    "ResourceSlice": {
        "spec": {
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0"}],
        }
    },
    "ResourceClaim": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}},
    "ResourceClaimTemplate": {
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}
    },
    "DeviceClass": {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    "HorizontalPodAutoscaler": {
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
    },
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    "IngressClass": {"spec": {"controller": "example.com/c"}},
    "NetworkPolicy": {"spec": {"podSelector": {}}},
    "IPAddress": {"name": "10.96.0.77", "spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "s"}}},
    "ServiceCIDR": {"spec": {"cidrs": ["10.97.0.0/24"]}},
    "EndpointSlice": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"name": "http", "port": 80}],
    },
    "Role": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "RoleBinding": {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}},
    "ClusterRole": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "ClusterRoleBinding": {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}},
    "CertificateSigningRequest": {
        "spec": {"request": REQUEST, "signerName": "example.com/s", "usages": ["client auth"]}
    },
    "MutatingWebhookConfiguration": {"webhooks": [HOOK]},
    "ValidatingWebhookConfiguration": {"webhooks": [HOOK]},
    "ValidatingAdmissionPolicy": {
        "spec": {
            "validations": [{"expression": "true"}],
            "matchConstraints": {"resourceRules": HOOK["rules"]},
        }
    },
    "ValidatingAdmissionPolicyBinding": {"spec": {"policyName": "p", "validationActions": ["Deny"]}},
    "FlowSchema": {"spec": {"priorityLevelConfiguration": {"name": "exempt"}}},
    "PriorityLevelConfiguration": {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}},
    "APIService": {
        "name": "v1beta1.metrics.k8s.io",
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"name": "s", "namespace": "default"},
        },
    },
    "CustomResourceDefinition": {
        "name": "ws.example.com",
        "spec": {"group": "example.com", "scope": "Namespaced", "names": CRD_NAMES, "versions": [CRD_VERSION]},
    },
}

RESOURCES = {
    resource.kind: resource
    for version in reversed(built_in())
    for resource in version.resources
    if {"create", "get", "patch"} <= set(resource.verbs)
}


def _manifest(resource: Resource) -> Raw:
    needed = dict(NEEDED[resource.kind])
    meta: Raw = {"name": needed.pop("name", "x")}
    if resource.namespaced:
        meta["namespace"] = "default"
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **needed}


def _path(resource: Resource) -> str:
    root = f"/apis/{resource.group}" if resource.group else "/api"
    space = "/namespaces/default" if resource.namespaced else ""
    return f"{root}/{resource.version}{space}/{resource.name}"


def test_every_kind_that_is_served_is_known_with_its_fields() -> None:
    assert RESOURCES.keys() == NEEDED.keys()
    for resource in RESOURCES.values():
        kind = kind_of({"apiVersion": resource.api_version, "kind": resource.kind})
        assert kind.known
        assert kind.plural == resource.name
        assert kind.namespaced == resource.namespaced
        assert set(resource.short_names) == set(kind.short)
    assert {kind.name for kind in KINDS} == NEEDED.keys()


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=RESOURCES)
async def test_over_http(resource: Resource) -> None:
    manifest, path = _manifest(resource), _path(resource)
    manifest["metadata"]["labels"] = {"first": "1"}
    one = f"{path}/{manifest['metadata']['name']}"
    async with asking() as api:
        applied = await api.ask("PATCH", f"{one}?fieldManager=m", manifest, content_type=APPLY)
        assert applied.status == 201, applied.json
        again = await api.ask("PATCH", f"{one}?fieldManager=m", manifest, content_type=APPLY)
        assert again.status == 200, again.json
        assert again.json["metadata"]["resourceVersion"] == applied.json["metadata"]["resourceVersion"]
        assert any(entry["operation"] == "Apply" for entry in again.json["metadata"]["managedFields"])

    async with asking() as api:
        made = await api.create(path, manifest)
        listed = await api.get(path)
        assert made["metadata"]["uid"] in {each["metadata"]["uid"] for each in listed["items"]}
        last = json.dumps(manifest)
        patches: list[tuple[str, Any]] = [
            (MERGE, {"metadata": {"labels": {"merge": "1"}}}),
            (STRATEGIC, {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": last}}}),
            (STRATEGIC, {"metadata": {"labels": {"strategic": "1"}}}),
            (JSON_PATCH, [{"op": "add", "path": "/metadata/labels/json", "value": "1"}]),
        ]
        for content_type, patch in patches:
            answered = await api.ask("PATCH", one, patch, content_type=content_type)
            assert answered.status == 200, answered.json
        labels = {"merge": "1", "strategic": "1", "json": "1"}
        applied = await api.ask(
            "PATCH",
            f"{one}?fieldManager=m",
            {**manifest, "metadata": {**manifest["metadata"], "labels": {"applied": "1"}}},
            content_type=APPLY,
        )
        found = (await api.get(one))["metadata"]["labels"]
        if applied.status == 409:  # an atomic list or map, to which defaults were added
            assert applied.json["details"]["causes"]
        else:
            labels["applied"] = "1"
        assert {key: found[key] for key in labels} == labels
        table = await api.get(one, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        assert table["rows"][0]["object"]["metadata"]["name"] == manifest["metadata"]["name"]
        assert (await api.ask("DELETE", f"{one}?gracePeriodSeconds=0")).status == 200
        left = await api.ask("GET", one)  # objects with finalizers wait for controllers
        assert left.status == 404 or left.json["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=RESOURCES)
def test_over_the_socket(resource: Resource, tmp_path: Path) -> None:
    manifest = _manifest(resource)
    text, name = json.dumps(manifest), manifest["metadata"]["name"]
    cluster = ScenarioCluster(tmp_path)
    for flags, words in (("", ("created", "unchanged")), (" --server-side", ("serverside-applied",) * 2)):
        for word in words:
            result = cluster.execute(f"apply{flags}", text)
            if flags and "conflict" in result.text:  # defaults were added to the first manager's fields
                result = cluster.execute(f"apply{flags} --force-conflicts", text)
            assert result.status == 0, result.text
            assert f"/{name} {word}" in result.text
    for how, patch in (
        ("merge", {"metadata": {"labels": {"merge": "1"}}}),
        ("strategic", {"metadata": {"labels": {"strategic": "1"}}}),
        ("json", [{"op": "add", "path": "/metadata/labels/json", "value": "1"}]),
    ):
        result = cluster.execute(f"patch {resource.name} {name} --type {how} -p '{json.dumps(patch)}'", "")
        assert result.status == 0, result.text
    shown = json.loads(cluster.execute(f"get {resource.name} {name} -o json", "").text)
    assert {"merge": "1", "strategic": "1", "json": "1"}.items() <= shown["metadata"]["labels"].items()
    assert cluster.execute(f"get {resource.name}", "").status == 0
    assert cluster.execute(f"describe {resource.name} {name}", "").status == 0
    deleted = cluster.execute(f"delete {resource.name} {name} --grace-period=0", "")
    assert (deleted.status, "deleted" in deleted.text) == (0, True), deleted.text
