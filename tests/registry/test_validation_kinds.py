"""Tests of upstream's message for each invalid field of devices, storage and workloads."""

from typing import Any

import pytest

from kschedd.registry.validation import default_and_validate, validate_status
from tests.api.objects import Raw, named, pod, workload

DOMAIN = "a lowercase RFC 1123 subdomain must consist of"
LABEL = "a lowercase RFC 1123 label must consist of"


def answer(raw: Raw) -> list[str]:
    return [str(fault) for fault in default_and_validate(raw).faults]


def claim(**devices: Any) -> Raw:
    request = {"name": "r", "exactly": {"deviceClassName": "c"}}
    return named("ResourceClaim", "resource.k8s.io/v1", spec={"devices": {"requests": [request], **devices}})


def exactly(**fields: Any) -> Raw:
    return claim(requests=[{"name": "r", "exactly": {"deviceClassName": "c", **fields}}])


def slice_with(**spec: Any) -> Raw:
    pool = {"name": "p", "resourceSliceCount": 1}
    fields = {"driver": "d.example.com", "pool": pool, "nodeName": "n", **spec}
    return named("ResourceSlice", "resource.k8s.io/v1", spec=fields)


def device(**fields: Any) -> Raw:
    return slice_with(devices=[{"name": "gpu", **fields}])


def volumes(*volumes: Raw) -> Raw:
    return pod(volumes=list(volumes))


def service(**spec: Any) -> Raw:
    return named("Service", spec={"ports": [{"port": 80}], **spec})


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        # devices
        pytest.param(
            claim(constraints=[{"matchAttribute": ""}]),
            "spec.devices.constraints[0].matchAttribute: Required value: name required",
            id="attribute-without-a-name",
        ),
        pytest.param(
            claim(constraints=[{"matchAttribute": "/a"}]),
            "spec.devices.constraints[0].matchAttribute: Required value: the domain must not be empty",
            id="attribute-without-a-domain",
        ),
        pytest.param(
            claim(constraints=[{"matchAttribute": "a.b/"}]),
            "spec.devices.constraints[0].matchAttribute: Required value: the name must not be empty",
            id="attribute-with-a-domain-alone",
        ),
        pytest.param(
            claim(constraints=[{"distinctAttribute": "a"}]),
            'spec.devices.constraints[0].distinctAttribute: Invalid value: "a": must include a domain',
            id="distinct-attribute",
        ),
        pytest.param(
            claim(constraints=[{"matchAttribute": "a.b/c"}] * 33),
            "spec.devices.constraints: Too many: 33: must have at most 32 items",
            id="constraints-of-a-claim",
        ),
        pytest.param(
            claim(config=[{"opaque": {"driver": "d.e", "parameters": {"a": "x" * 10240}}}]),
            "spec.devices.config[0].opaque.parameters: Too long: may not be more than 10240 bytes",
            id="parameters-of-a-driver",
        ),
        pytest.param(
            slice_with(pool={"name": "x" * 254, "resourceSliceCount": 1}),
            "spec.pool.name: Too long: may not be more than 253 bytes",
            id="name-of-a-pool",
        ),
        pytest.param(
            slice_with(nodeName=None, nodeSelector={}),
            "spec.nodeSelector.nodeSelectorTerms: Invalid value: null: must have exactly one node selector term",
            id="node-selector-without-terms",
        ),
        pytest.param(
            device(attributes={f"a{n}": {"int": n} for n in range(33)}),
            "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must not exceed 32",
            id="attributes-of-a-device",
        ),
        pytest.param(
            device(attributes={"x" * 100: {"int": 1}}),
            f"spec.devices[0].attributes[{'x' * 47}...{'x' * 46}]: Too long: may not be more than 32 bytes",
            id="long-name-of-an-attribute",
        ),
        pytest.param(
            claim(requests=[{"name": f"r{n}", "exactly": {"deviceClassName": "c"}} for n in range(33)]),
            "spec.devices.requests: Too many: 33: must have at most 32 items",
            id="requests-of-a-claim",
        ),
        pytest.param(
            claim(
                requests=[
                    {
                        "name": "r",
                        "firstAvailable": [{"name": f"s{n}", "deviceClassName": "c"} for n in range(9)],
                    }
                ]
            ),
            "spec.devices.requests[0].firstAvailable: Too many: 9: must have at most 8 items",
            id="alternatives-of-a-request",
        ),
        pytest.param(
            exactly(selectors=[{"cel": {"expression": "true"}}] * 33),
            "spec.devices.requests[0].exactly.selectors: Too many: 33: must have at most 32 items",
            id="selectors-of-a-request",
        ),
        pytest.param(
            exactly(selectors=[{}]),
            "spec.devices.requests[0].exactly.selectors[0].cel: Required value",
            id="selector-of-nothing",
        ),
        pytest.param(
            exactly(allocationMode="All", count=2),
            "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is",
            id="count-of-all-devices",
        ),
        pytest.param(
            exactly(count=-1),
            "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero",
            id="negative-count",
        ),
        pytest.param(
            claim(constraints=[{}]),
            "spec.devices.constraints[0].matchAttribute: Required value",
            id="constraint-of-nothing",
        ),
        pytest.param(
            claim(constraints=[{"matchAttribute": "numa"}]),
            'spec.devices.constraints[0].matchAttribute: Invalid value: "numa": must include a domain',
            id="matched-attribute-without-a-domain",
        ),
        pytest.param(
            claim(constraints=[{"matchAttribute": "d.example.com/numa", "requests": ["other"]}]),
            'spec.devices.constraints[0].requests[0]: Invalid value: "other": must be the name of a request',
            id="constraint-on-a-request-that-is-not-there",
        ),
        pytest.param(
            claim(config=[{"opaque": {"driver": "d" * 64, "parameters": {}}}]),
            "spec.devices.config[0].opaque.driver: Too long: may not be more than 63 bytes",
            id="long-name-of-a-driver",
        ),
        pytest.param(
            named("DeviceClass", "resource.k8s.io/v1", spec={"config": [{}]}),
            "spec.config[0].opaque: Required value",
            id="configuration-of-nothing",
        ),
        pytest.param(
            named("DeviceClass", "resource.k8s.io/v1", spec={"config": [{"opaque": {"driver": "d"}}]}),
            "spec.config[0].opaque.parameters: Required value",
            id="configuration-without-parameters",
        ),
        pytest.param(
            slice_with(pool={"resourceSliceCount": 1}), "spec.pool.name: Required value", id="pool-without-a-name"
        ),
        pytest.param(
            slice_with(pool={"name": "p", "resourceSliceCount": 1, "generation": -1}),
            "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
            id="negative-generation",
        ),
        pytest.param(
            slice_with(devices=[{"name": f"d{n}"} for n in range(129)]),
            "spec.devices: Too many: 129: must have at most 128 items",
            id="devices-of-a-slice",
        ),
        pytest.param(device(name="A_b"), f'spec.devices[0].name: Invalid value: "A_b": {LABEL}', id="name-of-a-device"),
        pytest.param(
            device(attributes={"a": {"string": "x" * 65}}),
            "spec.devices[0].attributes[a].string: Too long: may not be more than 64 bytes",
            id="long-attribute",
        ),
        pytest.param(
            device(attributes={"Bad.Dom_/a": {"int": 1}}),
            f'spec.devices[0].attributes[Bad.Dom_/a]: Invalid value: "Bad.Dom_": {DOMAIN}',
            id="domain-of-an-attribute",
        ),
        # volumes of pods
        pytest.param(volumes({"emptyDir": {}}), "spec.volumes[0].name: Required value", id="volume-without-a-name"),
        pytest.param(
            volumes({"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}),
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
            id="volume-of-two-types",
        ),
        pytest.param(
            volumes({"name": "v", "iscsi": {"targetPortal": "a", "iqn": "iqn.2001-04.com.example:s", "lun": 256}}),
            "spec.volumes[0].iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
            id="logical-unit",
        ),
        pytest.param(
            volumes({"name": "v", "emptyDir": {"sizeLimit": "-1"}}),
            "spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity",
            id="negative-size-limit",
        ),
        pytest.param(
            volumes({"name": "v", "nfs": {"path": "/a"}}),
            "spec.volumes[0].nfs.server: Required value",
            id="source-without-what-it-needs",
        ),
        # storage
        pytest.param(
            named(
                "StorageClass",
                "storage.k8s.io/v1",
                provisioner="p",
                allowedTopologies=[{"matchLabelExpressions": [{"key": "k", "values": ["x", "x"]}]}],
            ),
            'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "x"',
            id="zone-twice",
        ),
        pytest.param(
            named("CSIDriver", "storage.k8s.io/v1", spec={"volumeLifecycleModes": ["X"]}),
            'spec.volumeLifecycleModes: Unsupported value: "X": supported values: "Persistent", "Ephemeral"',
            id="life-of-a-volume",
        ),
        # workloads
        pytest.param(
            workload("Deployment", replicas=-1),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            id="replicas",
        ),
        pytest.param(
            workload("Deployment", selector={"matchLabels": {"app": "b"}}),
            'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`',
            id="selector-of-others",
        ),
        pytest.param(
            workload("Deployment", selector={}),
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
            id="selector-of-everything",
        ),
        pytest.param(
            workload("ReplicaSet", selector={"matchExpressions": [{"key": "app", "operator": "In"}]}),
            'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"In"}]}: invalid',
            id="selector-that-cannot-be-read",
        ),
        pytest.param(
            workload("StatefulSet", updateStrategy={"type": "X"}),
            'spec.updateStrategy: Invalid value: {"Type":"X","RollingUpdate":null}: must be \'RollingUpdate\' or',
            id="update-strategy-of-a-stateful-set",
        ),
        pytest.param(
            workload("StatefulSet", persistentVolumeClaimRetentionPolicy={"whenScaled": "Never"}),
            'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Never": supported values: "',
            id="claims-kept",
        ),
        pytest.param(
            workload("StatefulSet", updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
            'spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: only allowed for',
            id="contradictory-strategy-of-a-stateful-set",
        ),
        pytest.param(
            workload("StatefulSet", updateStrategy={"rollingUpdate": {"partition": -1}}),
            "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0",
            id="partition",
        ),
        pytest.param(
            workload("StatefulSet", ordinals={"start": -1}),
            "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0",
            id="first-ordinal",
        ),
        pytest.param(
            workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}),
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
            id="daemons-that-cannot-be-replaced",
        ),
        pytest.param(
            workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}),
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable",
            id="daemons-replaced-in-both-ways",
        ),
        pytest.param(
            named(
                "Job",
                "batch/v1",
                spec={"completionMode": "Indexed", "parallelism": 1, "template": pod(restartPolicy="Never")},
            ),
            "spec.completions: Required value: when completion mode is Indexed",
            id="indexes-without-an-end",
        ),
        # services
        pytest.param(
            service(ports=[{"port": 80}, {"port": 81}]), "spec.ports[0].name: Required value", id="ports-have-names"
        ),
        pytest.param(
            service(ports=[{"name": "a", "port": 80}, {"name": "a", "port": 81}]),
            'spec.ports[1].name: Duplicate value: "a"',
            id="ports-have-names-of-their-own",
        ),
        pytest.param(
            service(ports=[{"port": 0}]),
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            id="port-of-a-service",
        ),
        pytest.param(
            service(ports=[{"port": 80, "protocol": "ICMP"}]),
            'spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
            id="protocol",
        ),
        pytest.param(
            service(ports=[{"port": 80, "targetPort": 65536}]),
            "spec.ports[0].targetPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
            id="target-port",
        ),
        pytest.param(
            service(type="Own"),
            'spec.type: Unsupported value: "Own": supported values: "ClusterIP", "ExternalName", "LoadBalancer"',
            id="type-of-a-service",
        ),
    ],
)
def test_a_wrong_field_is_named(raw: Raw, fault: str) -> None:
    found = answer(raw)
    assert any(text.startswith(fault) for text in found), found


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(claim(), id="a-plain-claim"),
        pytest.param(
            claim(
                requests=[{"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}],
                constraints=[{"matchAttribute": "d.example.com/numa", "requests": ["r", "r/s"]}],
                config=[{"requests": ["r/s"], "opaque": {"driver": "D.example.com", "parameters": {"a": 1}}}],
            ),
            id="alternatives-are-referred-to-by-both-names",
        ),
        pytest.param(slice_with(pool={"name": "a/b.c", "resourceSliceCount": 1}), id="pools-have-several-segments"),
        pytest.param(
            device(
                attributes={"a": {"version": "1.2.3-rc.1+b"}, "d.e/b": {"bool": False}}, capacity={"m": {"value": 1}}
            ),
            id="attributes-of-every-type",
        ),
        pytest.param(
            named(
                "PersistentVolumeClaim",
                spec={
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "2Gi"}, "limits": {"storage": "1Gi"}},
                },
            ),
            id="a-claim-may-ask-for-more-than-its-limit",
        ),
        pytest.param(
            workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}),
            id="new-daemons-first",
        ),
    ],
)
def test_nothing_is_wrong(raw: Raw) -> None:
    assert answer(raw) == []


STORAGE = "storage.k8s.io/v1"


def attachment(**spec: Any) -> Raw:
    held = {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}, **spec}
    return named("VolumeAttachment", STORAGE, spec=held)


@pytest.mark.parametrize(
    ("raw", "faults"),
    [
        pytest.param(
            named("CSIDriver", STORAGE, spec={"fsGroupPolicy": "x"}),
            ['spec.fsGroupPolicy: Unsupported value: "x": supported values: "File", "None", "ReadWriteOnceWithFSType"'],
            id="an-unknown-policy",
        ),
        pytest.param(
            named("CSIDriver", STORAGE, spec={"tokenRequests": [{}, {"expirationSeconds": 1}]}),
            ['spec.tokenRequests[1].audience: Duplicate value: ""'],
            id="of-an-audience-that-comes-again-nothing-else-is-said",
        ),
        pytest.param(
            named("StorageClass", STORAGE, provisioner="X/Y/Z"),
            ['provisioner: Invalid value: "x/y/z": a qualified name must consist'],
            id="a-provisioner-is-shown-in-lower-case",
        ),
        pytest.param(
            named(
                "StorageClass",
                STORAGE,
                provisioner="p",
                allowedTopologies=[
                    {"matchLabelExpressions": [{"key": "k", "values": values}]} for values in (["a", "a"], ["a"])
                ],
            ),
            [
                'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
                'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""',
            ],
            id="terms-that-come-to-the-same",
        ),
        pytest.param(
            attachment(source={"persistentVolumeName": "", "inlineVolumeSpec": {}}, nodeName="", attacher=""),
            [
                "spec.attacher: Required value",
                'spec.attacher: Invalid value: "": a lowercase',
                "spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
                'spec.source.persistentVolumeName: Invalid value: "": a lowercase',
                'spec.nodeName: Invalid value: "": a lowercase',
            ],
            id="an-attachment-of-two-volumes",
        ),
    ],
)
def test_what_is_said_of_storage(raw: Raw, faults: list[str]) -> None:
    found = answer(raw)
    assert len(found) == len(faults), found
    assert all(text.startswith(begin) for text, begin in zip(found, faults, strict=True)), found


def test_of_an_error_of_attaching_upstream_tells_another_limit_than_it_has() -> None:
    faults = validate_status("VolumeAttachment", {"attachError": {"message": "x" * 1025, "errorCode": -1}})
    assert [str(fault) for fault in faults] == [
        "status.attachError.message: Too long: may not be more than 262144 bytes",
        "status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive",
    ]
