"""Redaction, field by field: a marker in every text of every kind does not come through."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kschedd.api.kinds import KINDS
from kschedd.api.schema import BOOL, INT, INT32, NUMBER, Fields, ListOf, MapOf, Schema, schema_of
from kschedd.dumps.redaction import Redaction, redacted

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
    expressions = {text for text in _texts(raw) if MARKER.search(text) and _is_expression(raw, text)}
    if not expressions:
        assert _left(made) == []


@pytest.mark.parametrize(("api_version", "kind"), EVERY)
def test_without_expressions_nothing_of_devices_comes_through(api_version: str, kind: str) -> None:
    raw, _ = _planted(api_version, kind)
    raw = _without_cel(raw)
    made = Redaction([raw], resources=True).redacted(raw)
    assert _left(made) == []


def _without_cel(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_cel(inner) for key, inner in value.items() if key != "cel"}
    return [_without_cel(inner) for inner in value] if isinstance(value, list) else value


def _is_expression(raw: Any, text: str) -> bool:
    return text in Redaction([raw]).expressions


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
    (made, owned), told = redacted([owner, pod])
    assert _left([made, owned]) == []
    assert made.keys() == {"apiVersion", "kind", "metadata"}
    meta = made["metadata"]
    named = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": meta["name"], "uid": meta["uid"]}
    assert owned["metadata"]["ownerReferences"] == [named]
    assert told == []


def test_what_is_left_out_and_what_is_kept_is_told() -> None:
    ingress: Raw = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}}
    device_class: Raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gold"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
    }
    (made,), told = redacted([ingress, device_class])
    assert made["spec"] == device_class["spec"]
    assert told == [
        "CEL expressions of DeviceClass gold are kept, and the names of drivers, attributes and capacities of all "
        "devices with them",
        "left out, since no decision reads them: 1 ingresses",
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
