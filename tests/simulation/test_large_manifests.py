"""Tests of manifests too large for the last-applied annotation, which only client-side apply to an API server needs."""

import io
import json

from kschedd.simulation.inputs import apply_all, read_manifests
from kschedd.store.patches.merging import LAST_APPLIED
from kschedd.store.store import Store

FIELDS = {f"field{number:05d}": {"type": "string", "description": "x" * 40} for number in range(3_000)}
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": FIELDS}}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "bigs.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "bigs", "singular": "big", "kind": "Big", "listKind": "BigList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}


def _applied(store: Store, *manifests: object) -> list[str]:
    text = "\n---\n".join(map(json.dumps, manifests))
    return apply_all(store, read_manifests(["-"], io.BytesIO(text.encode()))).errors


def test_a_large_definition_is_accepted_twice() -> None:
    store = Store(now=lambda: 0.0)
    assert _applied(store, DEFINITION, DEFINITION) == []
    assert LAST_APPLIED not in store.get("CustomResourceDefinition", "", "bigs.example.com").annotations


def test_a_fault_names_the_object() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    assert _applied(Store(now=lambda: 0.0), pod) == ["<stdin>:1: Pod p: spec.containers: Required value"]
