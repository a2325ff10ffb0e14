"""Tests that objects of every kind are validated by the API server's rules."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.schemas.kinds import lookup
from kschedd.registry.defaults import default
from kschedd.registry.validation import default_and_validate, default_and_validate_meta, validate
from tests.api.objects import Raw, named, pod, workload


def answer(raw: Raw) -> list[str]:
    return [str(fault) for fault in default_and_validate(raw).faults]


def with_meta(**meta: Any) -> Raw:
    raw = pod()
    raw["metadata"] = {"name": "p", **meta}
    return raw


@pytest.mark.parametrize(
    ("meta", "fault"),
    [
        ({"name": ""}, "metadata.name: Required value: name or generateName is required"),
        ({"name": "Web_1"}, 'metadata.name: Invalid value: "Web_1": a lowercase RFC 1123 subdomain must consist of'),
        ({"name": "a" * 254}, "metadata.name: Invalid value: "),
        ({"name": "", "generateName": "Web-"}, 'metadata.generateName: Invalid value: "Web-": a lowercase RFC'),
        ({"namespace": "a.b"}, 'metadata.namespace: Invalid value: "a.b": must not contain dots'),
        ({"labels": {"a/b/c": "d"}}, "metadata.labels: Invalid value: "),
        ({"labels": {"a": "x" * 64}}, "metadata.labels: Invalid value: "),
        ({"annotations": {"a b": "c"}}, 'metadata.annotations: Invalid value: "a b": name part must consist of'),
        ({"annotations": {"a": "b" * 300_000}}, "metadata.annotations: Too long: may not be more than 262144 bytes"),
        ({"ownerReferences": [{"kind": "ReplicaSet"}]}, 'metadata.ownerReferences.apiVersion: Invalid value: ""'),
        ({"finalizers": ["!"]}, 'metadata.finalizers[0]: Invalid value: "!"'),
    ],
)
def test_metadata(meta: Raw, fault: str) -> None:
    found = answer(with_meta(**meta))
    assert any(text.startswith(fault) for text in found), found
    assert all(len(text) < 500 for text in found)


def test_a_generated_name_may_end_in_a_dash() -> None:
    assert answer(with_meta(name="", generateName="web-")) == []


OWN = {"app": "web"}
JOB = named(
    "Job",
    "batch/v1",
    spec={
        "manualSelector": True,
        "selector": {"matchLabels": OWN},
        "template": {"metadata": {"labels": OWN}, "spec": {**pod()["spec"], "restartPolicy": "Never"}},
    },
)


def test_two_controllers_own_nothing() -> None:
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "1", "controller": True}
    (fault,) = answer(with_meta(ownerReferences=[owner, {**owner, "name": "y", "uid": "2"}]))
    assert "Only one reference can have Controller set to true" in fault


def test_metadata_by_itself() -> None:
    meta, faults = default_and_validate_meta({"name": "p", "labels": None}, lookup("pods"))
    assert (meta, faults) == ({"name": "p", "namespace": "default"}, [])
    assert default_and_validate_meta(7, lookup("pods"))[1]


def test_cluster_scoped_kinds_have_no_namespace() -> None:
    raw = named("Node")
    raw["metadata"]["namespace"] = "d"
    assert answer(raw) == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_objects_of_custom_resources_are_taken_as_they_are() -> None:
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"x": None}}
    done = default_and_validate(widget)
    assert done.raw == widget
    assert not done.faults


def test_versions_we_do_not_read() -> None:
    (fault,) = answer(named("PriorityClass", "scheduling.k8s.io/v1alpha1", value=1))
    assert (
        fault == 'apiVersion: Unsupported value: "scheduling.k8s.io/v1alpha1": supported values: "scheduling.k8s.io/v1"'
    )


def node(**fields: Any) -> Raw:
    return named("Node", **fields)


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (
            node(status={"capacity": {"cpu": "-4"}}),
            'status.capacity.cpu: Invalid value: "-4": must be greater than or equal to 0',
        ),
        (
            node(status={"allocatable": {"pods": "1.5"}}),
            'status.allocatable.pods: Invalid value: "1500m": must be an integer',
        ),
        (
            node(status={"allocatable": {"example.com/x": "100Pi"}}),
            'status.allocatable.example.com/x: Invalid value: "100Pi": must be an integer',
        ),
        (node(spec={"taints": [{"key": "a"}]}), "metadata.taints[0].effect: Required value"),
        (
            node(spec={"taints": [{"key": "a", "effect": "NoWay"}]}),
            'metadata.taints[0].effect: Unsupported value: "NoWay": supported values: "NoSchedule", ',
        ),
        (
            node(spec={"taints": [{"key": "a", "effect": "NoExecute"}] * 2}),
            'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoExecute",',
        ),
        (
            workload("Deployment", selector=None),
            "spec.selector: Required value",
        ),
        (
            workload("Deployment", selector={}),
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        (
            workload("ReplicaSet", selector={"matchLabels": {"app": "b"}}),
            'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`',
        ),
        (workload("ReplicaSet", replicas=-1), "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        (
            workload("Deployment", strategy={"type": "Slow"}),
            'spec.strategy: Unsupported value: {"Type":"Slow","RollingUpdate":null}: supported values: '
            '"Recreate", "RollingUpdate"',
        ),
        (
            workload("Deployment", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            workload("Deployment", strategy={"rollingUpdate": {"maxSurge": "many"}}),
            'spec.strategy.rollingUpdate.maxSurge: Invalid value: "many": a valid percent string must be',
        ),
        (workload("StatefulSet", podManagementPolicy="Random"), "spec.podManagementPolicy: Invalid value"),
        (workload("DaemonSet", template=None), "spec.template.spec.containers: Required value"),
        (
            named("Job", "batch/v1", spec={"template": {"spec": pod()["spec"]}}),
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
        (named("Service", spec={}), "spec.ports: Required value"),
        (
            named("Service", spec={"ports": [{"port": 80}, {"port": 81}]}),
            "spec.ports[0].name: Required value",
        ),
        (
            named("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1, "maxUnavailable": 1}),
            'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,'
            '"UnhealthyPodEvictionPolicy":null}: '
            "minAvailable and maxUnavailable cannot be both set",
        ),
        (
            named("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "101%"}),
            'spec.minAvailable: Invalid value: "101%": must not be greater than 100%',
        ),
        (
            named("PriorityClass", "scheduling.k8s.io/v1", value=1_000_000_001),
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            {**named("PriorityClass", "scheduling.k8s.io/v1", value=1), "metadata": {"name": "system-mine"}},
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only",
        ),
        (named("RuntimeClass", "node.k8s.io/v1", handler=""), 'handler: Invalid value: "": a lowercase RFC 1123 label'),
        (
            named("PersistentVolumeClaim", spec={}),
            "spec.accessModes: Required value: at least 1 access mode is required",
        ),
        (
            named(
                "PersistentVolumeClaim",
                spec={"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"], "resources": {"requests": {"storage": "0"}}},
            ),
            'spec.resources[storage]: Invalid value: "0": must be greater than zero',
        ),
        (
            named("PersistentVolume", spec={"capacity": {"storage": "1Gi"}, "local": {"path": "/d"}}),
            "spec.nodeAffinity: Required value: Local volume requires node affinity",
        ),
        (named("StorageClass", "storage.k8s.io/v1"), "provisioner: Required value"),
        (
            named("StorageClass", "storage.k8s.io/v1", provisioner="p", volumeBindingMode="Later"),
            'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"',
        ),
        (
            named("CSINode", "storage.k8s.io/v1", spec={"drivers": [{"name": "d", "nodeID": "1"}] * 2}),
            'spec.drivers[1].name: Duplicate value: "d"',
        ),
        (named("VolumeAttachment", "storage.k8s.io/v1", spec={}), "spec.attacher: Required value"),
        (
            named("ResourceQuota", spec={"hard": {"pods": "-1"}}),
            'spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            named("Lease", "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 0}),
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            named(
                "ResourceClaim", "resource.k8s.io/v1", spec={"devices": {"requests": [{"name": "r", "exactly": {}}]}}
            ),
            "spec.devices.requests[0].exactly.deviceClassName: Required value",
        ),
        (
            named("ResourceClaim", "resource.k8s.io/v1", spec={"devices": {"requests": [{"name": "r"}]}}),
            "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
        ),
        (
            named("ResourceSlice", "resource.k8s.io/v1", spec={"driver": "d"}),
            "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is",
        ),
    ],
)
def test_kinds(raw: Raw, fault: str) -> None:
    found = answer(raw)
    assert any(text.startswith(fault) for text in found), found


@pytest.mark.parametrize(
    "raw",
    [
        node(status={"capacity": {"cpu": "4", "memory": "1Gi", "pods": "110", "example.com/gpu": "2"}}),
        workload("Deployment"),
        workload("ReplicaSet"),
        workload("StatefulSet"),
        workload("DaemonSet"),
        JOB,
        named("Service", spec={"ports": [{"port": 80}]}),
        named("Service", spec={"clusterIP": "None"}),
        named("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "50%", "selector": {}}),
        named("PriorityClass", "scheduling.k8s.io/v1", value=1000),
        named("RuntimeClass", "node.k8s.io/v1", handler="kata", overhead={"podFixed": {"cpu": "250m"}}),
        named("Namespace"),
        named("Lease", "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 40}),
        named("Event", "v1", message="x"),
        named("ResourceQuota", spec={"hard": {"pods": "10", "requests.cpu": "4", "count/jobs.batch": "2"}}),
        named("StorageClass", "storage.k8s.io/v1", provisioner="example.com/disk"),
    ],
    ids=lambda raw: str(raw["kind"]),
)
def test_good_objects(raw: Raw) -> None:
    assert answer(raw) == []
    done = default_and_validate(raw).raw
    assert answer(done) == []  # and again, as stored


def test_a_long_key_is_not_repeated_whole() -> None:
    for text in answer(with_meta(labels={"a" * 1_000_000: "b"})):
        assert len(text) < 10_000


RICH = [
    pod(
        nodeSelector={"a": "b"},
        tolerations=[{"key": "a", "operator": "Exists"}],
        overhead={"cpu": "1"},
        resources={"limits": {"cpu": "1"}},
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
        volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}],
        affinity={
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b"}}}}
                ]
            }
        },
    ),
    node(spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}, status={"capacity": {"cpu": "4"}}),
    workload("Deployment", strategy={"rollingUpdate": {"maxSurge": "10%"}}),
    named("Service", spec={"ports": [{"port": 80}], "selector": {"a": "b"}}),
    named("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "50%", "selector": {}}),
    named("ResourceClaim", "resource.k8s.io/v1", spec={"devices": {"requests": [{"name": "r", "exactly": {}}]}}),
]
JUNK = st.sampled_from([None, 0, -1, 2**70, 1.5, True, "", "-", "1.5.0", [], {}, [None], {"a": None}, [[]], [{}]])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield from places(item, (*path, step))


@given(st.sampled_from(RICH), st.data())
def test_junk_anywhere_is_a_fault_or_harmless_and_never_a_crash(raw: Raw, data: st.DataObject) -> None:
    broken: Any = copy.deepcopy(raw)
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(places(broken))))
        inner = broken
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = copy.deepcopy(data.draw(JUNK))
    before = copy.deepcopy(broken)
    done = default_and_validate(broken)
    assert all(str(fault) for fault in done.faults)
    assert bool(validate(default(broken))) == bool(done.faults)
    assert broken == before


def test_the_mounts_of_a_stateful_set_may_name_its_claim_templates() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    raw = workload("StatefulSet", volumeClaimTemplates=[claim])
    [container] = raw["spec"]["template"]["spec"]["containers"]
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    assert answer(raw) == []
    container["volumeMounts"][0]["name"] = "logs"
    assert answer(raw) == ['spec.template.spec.containers[0].volumeMounts[0].name: Not found: "logs"']
