"""Redaction, field by field: a marker in every text of every kind is removed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.schemas.kinds import KINDS
from kschedd.api.schemas.schema import BOOL, INT, INT32, NUMBER, Fields, ListOf, MapOf, Schema, schema_of
from kschedd.dumps.redaction import Redaction, redacted
from kschedd.dumps.saving import json_chunks
from kschedd.simulation.engine import LoggedAttempt
from tests.dumps.test_round_trip import taken

Raw = dict[str, Any]
MARKER = re.compile(r"mk\d+zq", re.IGNORECASE)
DEEPEST = 9


class _Markers:
    def __init__(self) -> None:
        self.count = 0

    def next(self) -> str:
        self.count += 1
        return f"mk{self.count}zq"

    def value(self, schema: Schema, seen: tuple[str, ...] = ()) -> Any:
        if isinstance(schema, Fields):
            if seen.count(schema.name) or len(seen) > DEEPEST:
                return {}
            return {name: self.value(inner, (*seen, schema.name)) for name, inner in schema.items()}
        if isinstance(schema, ListOf):
            return [self.value(schema.item, seen)]
        if isinstance(schema, MapOf):
            return {self.next(): self.value(schema.item, seen)}
        if schema in (INT, INT32, NUMBER):
            return 1
        return True if schema is BOOL else self.next()


def _planted(api_version: str, kind: str) -> tuple[Raw, int]:
    markers = _Markers()
    schema = schema_of(api_version, kind)
    assert schema is not None
    raw = markers.value(schema)
    raw["metadata"]["annotations"] = {f"{markers.next()}.example.com/x": markers.next()}
    return {**raw, "apiVersion": api_version, "kind": kind}, markers.count


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def _left(raw: Any) -> list[str]:
    return [text for text in _texts(raw) if MARKER.search(text)]


EVERY = [
    pytest.param(version, kind.name, id=f"{version}-{kind.name}") for kind in KINDS for version in kind.api_versions
]


@pytest.mark.parametrize(("api_version", "kind"), EVERY)
def test_no_text_of_a_kind_comes_through(api_version: str, kind: str) -> None:
    raw, count = _planted(api_version, kind)
    assert count > 10
    made = Redaction([raw], resources=True).redacted(raw)
    assert _left(made) == []


def test_a_custom_resource_keeps_its_metadata_alone_and_its_kind_is_made_up() -> None:
    owner: Raw = {
        "apiVersion": "mk1zq.example/v1",
        "kind": "Mk2zq",
        "metadata": {"name": "mk3zq", "namespace": "mk4zq", "uid": "mk5zq"},
        "spec": {"mk6zq": "mk7zq"},
        "status": ["mk8zq"],
        "mk9zq": {},
    }
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": "mk3zq", "uid": "mk5zq"}
    pod: Raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "ownerReferences": [reference]},
        "spec": {"containers": [{"name": "c", "image": "mk10zq/i:1"}]},
    }
    (made, owned), reported = redacted([owner, pod])
    assert _left([made, owned]) == []
    assert made.keys() == {"apiVersion", "kind", "metadata"}
    meta = made["metadata"]
    named = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": meta["name"], "uid": meta["uid"]}
    assert owned["metadata"]["ownerReferences"] == [named]
    assert reported == []


def test_annotations_of_the_simulation_stay_without_names_and_texts() -> None:
    stated = {"kschedd.io/run-seconds": "3", "kschedd.io/termination-seconds": "never", "kschedd.io/readiness": "fails"}
    of_pod = {
        "kschedd.io/exit-code.mk1zq": "1",
        "kschedd.io/logs": "password mk2zq",
        "kschedd.io/logs.mk1zq": "mk2zq",
        "kschedd.io/memory-usage": "mk2zq",
        "kschedd.io/dumped-condition": '{"message": "mk2zq"}',
        "kschedd.io/mk3zq": "1",
    }
    pod: Raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": stated | of_pod},
        "spec": {"containers": [{"name": "mk1zq", "image": "i"}]},
    }
    kept = {"kschedd.io/kubelet": "stopped", "kschedd.io/eviction-hard": "memory.available<100Mi"}
    of_node = {"kschedd.io/cloud-zone": "mk4zq", "kschedd.io/price": "0.5", "kschedd.io/cloud-provider": "mk5zq"}
    node: Raw = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "annotations": kept | of_node, "labels": {"topology.kubernetes.io/zone": "mk4zq"}},
    }
    (pod_made, node_made), _ = redacted([pod, node])
    assert _left([pod_made, node_made]) == []
    container = pod_made["spec"]["containers"][0]["name"]
    assert pod_made["metadata"]["annotations"] == stated | {f"kschedd.io/exit-code.{container}": "1"}
    zone = node_made["metadata"]["labels"]["topology.kubernetes.io/zone"]
    expected = kept | {"kschedd.io/cloud-zone": zone, "kschedd.io/price": "0.5"}
    assert node_made["metadata"]["annotations"] == expected


def _class(expression: str) -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gold"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def test_what_is_left_out_and_what_is_kept_is_told() -> None:
    ingress: Raw = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}}
    slices = [raw for number in range(2) for raw in _node(number) if raw["kind"] == "ResourceSlice"]
    letters = _class("device.attributes['dra.acme.example'].model.startsWith('ac')")
    (made, *hidden), reported = redacted([ingress, letters, *slices])
    assert made["spec"] == letters["spec"]
    assert "serial" not in json.dumps(hidden)
    assert reported == [
        "CEL expressions of DeviceClass gold are kept, and the drivers, attributes and capacities that they name with "
        "them: with made-up words they would select other devices",
        "left out, since no decision reads them: 1 ingresses",
    ]
    driver = _class("device.driver.endsWith('mple')")
    (made, *hidden), reported = redacted([driver, *slices])
    assert made["spec"] == driver["spec"]
    assert "serial" in json.dumps(hidden)
    assert reported == [
        "CEL expressions of DeviceClass gold are kept, and the names of drivers, attributes and capacities of all "
        "devices with them: with made-up words they would select other devices",
    ]


def test_names_of_kubernetes_and_words_of_the_api_stay() -> None:
    raws: list[Raw] = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "fast"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "acme-1"}},
            "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]},
            "status": {"allocatable": {"cpu": "4", "acme.example/gpu": "1", "hugepages-2Mi": "4Mi"}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "containers": [
                    {"name": "c", "image": "i", "resources": {"limits": {"acme.example/gpu": "1"}}},
                ]
            },
        },
    ]
    (storage, node, pod), _ = redacted(raws)
    assert storage["provisioner"] == "kubernetes.io/no-provisioner"
    assert storage["volumeBindingMode"] == "WaitForFirstConsumer"
    assert node["spec"]["taints"] == raws[1]["spec"]["taints"]
    assert "topology.kubernetes.io/zone" in node["metadata"]["labels"]
    (resource,) = pod["spec"]["containers"][0]["resources"]["limits"]
    assert node["status"]["allocatable"] == {"cpu": "4", resource: "1", "hugepages-2Mi": "4Mi"}
    assert "acme" not in json.dumps([storage, node, pod])


def _device_of(number: int) -> Raw:
    attributes = {
        "model": {"string": f"acme-{8 + number % 2}"},
        "release": {"version": f"1.{number}.0-acme"},
        "ecc": {"bool": number % 2 == 0},
        "other.acme/slot": {"int": number},
        "serialOfAcme": {"string": f"acme-serial-{number}"},
    }
    capacity = {"memory": {"value": f"{4 + 4 * (number % 3)}Gi"}}
    return {"name": "d0", "attributes": attributes, "capacity": capacity}


GPU = "acme.example/gpu"


def _meta(name: str, number: int, **more: Any) -> Raw:
    return {"name": name, "uid": f"00000000-0000-4000-8000-{number:012d}", "resourceVersion": str(number), **more}


def _node(number: int) -> list[Raw]:
    name = f"acme-node-{number}"
    labels = {"kubernetes.io/hostname": name, "acme.example/rack": f"rack-{number % 2}"}
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "20", GPU: str(number % 3), "example.com/fpga": "1"}
    driver = {"name": "acme.example", "nodeID": f"acme-id-{number}", "topologyKeys": ["acme.example/rack"]}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": _meta(name, number, labels=labels),
            "spec": {"taints": [{"key": "acme.example/team", "value": "red", "effect": "NoSchedule"}] * (number == 5)},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": _meta(name, 100 + number),
            "spec": {"drivers": [{**driver, "allocatable": {"count": 1}}]},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": _meta(f"{name}-slice", 200 + number),
            "spec": {
                "driver": "dra.acme.example",
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [_device_of(number)],
            },
        },
    ]


def _volume(number: int) -> list[Raw]:
    claim, volume = f"acme-claim-{number}", f"acme-volume-{number}"
    bound = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "acme", "name": claim}
    amount = {"storage": "1Gi"}
    modes = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", "storageClassName": "acme-fast"}
    claim_meta = _meta(claim, 300 + number, namespace="acme", annotations=bound)
    reference["uid"] = claim_meta["uid"]
    csi = {"driver": "acme.example", "volumeHandle": f"acme-handle-{number}"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": claim_meta,
            "spec": {**modes, "resources": {"requests": amount}, "volumeName": volume},
            "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": amount},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": _meta(volume, 400 + number, annotations={"pv.kubernetes.io/provisioned-by": "acme.example"}),
            "spec": {**modes, "capacity": amount, "csi": csi, "claimRef": reference},
            "status": {"phase": "Bound"},
        },
    ]


def _pod(number: int) -> Raw:
    requests = {"cpu": "1", "memory": "1Gi", **({GPU: "1"} if number % 3 == 0 else {})}
    spec: Raw = {
        "containers": [{"name": "main", "image": "acme/app:2", "resources": {"requests": requests, "limits": requests}}]
    }
    if number % 4 == 1:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"acme-claim-{number % 8}"}}]
    if number % 5 == 2:
        spec["tolerations"] = [
            {"key": "acme.example/team", "operator": "Equal", "value": "red", "effect": "NoSchedule"}
        ]
        spec["nodeSelector"] = {"acme.example/rack": "rack-1"}
    if number % 7 == 3:
        spec["priorityClassName"], spec["priority"] = "acme-high", 1000
    if number % 6 == 4:
        spec["resourceClaims"] = [{"name": "device", "resourceClaimName": f"acme-device-{number}"}]
    terms = [{"labelSelector": {"matchLabels": {"acme": "x"}}, "topologyKey": "acme.example/rack"}]
    if number % 9 == 8:
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    spread = {"maxSkew": 1, "topologyKey": "acme.example/rack", "whenUnsatisfiable": "DoNotSchedule"}
    if number % 5 == 4:
        spec["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": {"acme": "y"}}}]
    labels = {"acme": "x" if number % 3 else "y"}
    meta = _meta(f"acme-pod-{number:02d}", 500 + number, namespace="acme", labels=labels)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def _device_claim(number: int, *, expression: str) -> Raw:
    exactly: Raw = {"deviceClassName": "acme-devices", "allocationMode": "ExactCount", "count": 1}
    if expression:
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": _meta(f"acme-device-{number}", 600 + number, namespace="acme"),
        "spec": {"devices": {"requests": [{"name": "one", "exactly": exactly}]}},
    }


def _cluster(expression: str) -> list[Raw]:
    binding = {"provisioner": "acme.example", "volumeBindingMode": "WaitForFirstConsumer"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": _meta("acme", 700)},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": _meta("acme-fast", 701), **binding},
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": _meta("acme-high", 702),
            "value": 1000,
        },
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": _meta("acme-devices", 703), "spec": {}},
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": _meta("acme-quota", 704, namespace="acme"),
            "spec": {"hard": {f"requests.{GPU}": "50", "count/widgets.acme.example": "3"}},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _meta("acme-budget", 705, namespace="acme"),
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"acme": "x"}}},
        },
        *(raw for number in range(6) for raw in _node(number)),
        *(raw for number in (1, 5) for raw in _volume(number)),
        *(_device_claim(number, expression=expression) for number in range(40) if number % 6 == 4),
        *(_pod(number) for number in range(40)),
    ]


MODEL = 'device.attributes["dra.acme.example"].model'
REWRITTEN = [
    "",
    f'{MODEL} == "acme-9"',
    'device.driver == "dra.acme.example" // not "gpu.acme.example"',
    f'{MODEL} in ["acme-7", "acme-9"]',
    f"{MODEL}.startsWith('acme-8')",
    f"{MODEL}.matches(r'^acme-\\d$') && device.attributes['dra.acme.example'].ecc",
    'cel.bind(acme, device.attributes["dra.acme.example"], acme.?model.orValue("acme") == "acme-8" || acme.ecc)',
    'device.capacity["dra.acme.example"].memory.isGreaterThan(quantity("6Gi"))',
    'device.attributes["dra.acme.example"].release.isGreaterThan(semver("1.2.0-acme"))',
    'device.attributes["other.acme"].slot > 2 || device.attributes["dra.acme.example"]["model"] == """acme-9"""',
    '"acme" in device.attributes || has(device.attributes["dra.acme.example"].acme)',
]
KEPT = [
    f"{MODEL}.startsWith('ac')",
    f"{MODEL}.size() == 6 && {MODEL} != 'acme-9'",
    f"{MODEL}.matches('^[a-c]+me-9$')",
    "device.driver.endsWith('mple')",
]


@pytest.mark.parametrize("expression", [*REWRITTEN, *KEPT])
def test_decisions_are_the_same(expression: str, tmp_path: Path) -> None:
    plain = _cluster(expression)
    hidden, reported = redacted(plain)
    decided, unplaced = [], []
    for name, raws in (("plain", plain), ("hidden", hidden)):
        file = tmp_path / f"{name}.json"
        file.write_text("".join(json_chunks(iter(raws))), encoding="utf-8")
        log: list[LoggedAttempt] = []
        cluster = taken(file, 1.8e9, log, frozen=True)
        assert cluster.applied.errors == []
        cluster.finish(600)
        uids = {node.name: node.uid for node in cluster.store.list("Node")}
        decided.append([(one.attempt, uids.get(one.node), one.feasible, one.visited, one.score) for one in log])
        unplaced.append(sum(not one.node for one in log))
    assert decided[0] == decided[1]
    assert 0 < unplaced[0] < len(decided[0]) - 15
    left = "acme" in json.dumps(hidden)
    assert left == bool(reported) == (expression in KEPT)


def test_a_custom_resource_keeps_its_scale_which_budgets_read(tmp_path: Path) -> None:
    scale = {"specReplicasPath": ".spec.size.acmeCount", "statusReplicasPath": ".status.acmeCount"}
    names = {"plural": "acmes", "singular": "acme", "kind": "Acme", "listKind": "AcmeList"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"acmeField": {"type": "string"}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"scale": scale}}
    accepted = [{"type": each, "status": "True"} for each in ("NamesAccepted", "Established")]
    definition: Raw = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": _meta("acmes.acme.example", 1),
        "spec": {"group": "acme.example", "scope": "Namespaced", "names": names, "versions": [version]},
        "status": {"conditions": accepted, "acceptedNames": names, "storedVersions": ["v1"]},
    }
    owner: Raw = {
        "apiVersion": "acme.example/v1",
        "kind": "Acme",
        "metadata": _meta("acme-1", 2, namespace="default"),
        "spec": {"size": {"acmeCount": 4}, "acmeField": "acme"},
    }
    (made_definition, made), reported = redacted([definition, owner])
    assert (made["spec"], reported) == ({"replicas": 4}, [])
    assert "acme" not in json.dumps([made_definition, made]).lower()
    file = tmp_path / "hidden.json"
    file.write_text("".join(json_chunks(iter([made_definition, made]))), encoding="utf-8")
    cluster = taken(file, 1.8e9, [], frozen=True)
    assert cluster.applied.errors == []
    kind = cluster.store.kind_of(made)
    assert f"{kind.plural}.{kind.group}" == made_definition["metadata"]["name"]
    assert cluster.store.find(kind.name, "default", made["metadata"]["name"]) is not None
