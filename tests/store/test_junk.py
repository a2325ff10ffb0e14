"""Tests that a manifest with an invalid value anywhere is stored or rejected with a message."""

from collections.abc import Iterator
from typing import Any

import pytest

from kschedd.errors import KscheddError
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map, node, pod, workload

JUNK: list[Any] = [None, 5, -1, 2**70, 1.5, True, "", "text", [], [1], [None], {}, {"a": 1}, {5: "x"}, [[]], [{}]]

TERM = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone", "matchLabelKeys": ["app"]}
RICH = pod(
    tolerations=[{"key": "a", "operator": "Exists"}],
    nodeSelector={"a": "b"},
    priorityClassName="system-node-critical",
    topologySpreadConstraints=[{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **TERM}],
    affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
    schedulingGates=[{"name": "a.io/b"}],
)
RICH["metadata"] |= {
    "annotations": {"a": "b"},
    "finalizers": ["a.io/b"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "controller": True}],
}
MANIFESTS = [
    RICH,
    node(conditions={"Ready": "True"}, taints=[{"key": "a", "effect": "NoSchedule"}]),
    workload("Deployment"),
]


def worded(refusal: KscheddError) -> None:
    assert len(str(refusal)) > 10


def spoiled(value: Any) -> Iterator[Any]:
    """Yield the value with an invalid value in each place, one place at a time."""
    yield from JUNK
    if isinstance(value, dict):
        for key, item in value.items():
            for other in spoiled(item):
                yield {**value, key: other}
    elif isinstance(value, list):
        for place, item in enumerate(value):
            for other in spoiled(item):
                yield [*value[:place], other, *value[place + 1 :]]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=["Pod", "Node", "Deployment"])
def test_junk_in_a_manifest(manifest: dict[str, Any]) -> None:
    store = Store(now=Clock())
    stored = 0
    for raw in spoiled(manifest):
        if not isinstance(raw, dict):
            continue
        version = store.version
        try:
            made, _ = store.apply(raw, restore=True)
        except KscheddError as refusal:
            worded(refusal)
            assert store.version == version
        else:
            stored += 1
            made = store.delete(made.kind, made.namespace, made.name, grace_period_s=0)
            if made.metadata.get("finalizers"):
                store.merge_patch(made.kind, made.namespace, made.name, {"metadata": {"finalizers": None}})
    assert stored


@pytest.mark.parametrize("manifest", MANIFESTS, ids=["Pod", "Node", "Deployment"])
def test_junk_in_a_patch(manifest: dict[str, Any]) -> None:
    store = Store(now=Clock())
    made = store.create(manifest)
    for patch in spoiled({name: manifest[name] for name in ("metadata", "spec", "status") if name in manifest}):
        for subresource in ("", "status"):
            try:
                store.merge_patch(made.kind, made.namespace, made.name, patch, subresource=subresource)
            except KscheddError as refusal:
                worded(refusal)


def test_junk_in_an_unknown_kind() -> None:
    store = Store(now=Clock())
    for raw in spoiled({**config_map("c", a="1"), "kind": "Widget", "apiVersion": "example.com/v1"}):
        if isinstance(raw, dict):
            try:
                made = store.create(raw)
            except KscheddError as refusal:
                worded(refusal)
            else:
                store.delete(made.kind, made.namespace, made.name)


def test_a_kind_of_ours_in_no_version_that_there_is() -> None:
    store = Store(now=Clock())
    for kind in ("Deployment", "ResourceClaimTemplate", "CronJob"):
        raw = {"apiVersion": "v7", "kind": kind, "metadata": {"name": "a"}, "spec": {"spec": 5, "template": 5}}
        with pytest.raises(KscheddError, match="no matches for kind"):
            store.create(raw)
