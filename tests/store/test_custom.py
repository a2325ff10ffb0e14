"""Tests of custom resources, which are accepted once defined, validated by their definition, and deleted with it."""

from typing import Any

import pytest

from kschedd.store.errors import Forbidden, Invalid, NoMatch
from kschedd.store.store import Store
from tests.store.definitions import definition, widget
from tests.store.manifests import Clock, pod


@pytest.fixture
def store() -> Store:
    return Store(now=Clock())


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(widget("w"), 'no matches for kind "Widget" in version "example.com/v1"', id="not-defined"),
        pytest.param(
            {**pod(), "kind": "Pdo"},
            'no matches for kind "Pdo" in version "v1"; did you mean "Pod" in version "v1"?',
            id="misspelt",
        ),
        pytest.param(
            {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}},
            'no matches for kind "PodDisruptionBudget" in version "policy/v1beta1"; PodDisruptionBudget is served in '
            "policy/v1",
            id="removed-version",
        ),
        pytest.param(
            {"apiVersion": "extensions/v1beta1", "kind": "Deployment", "metadata": {"name": "d"}},
            'no matches for kind "Deployment" in version "extensions/v1beta1"; did you mean "Deployment" in version '
            '"apps/v1"?',
            id="removed-group",
        ),
    ],
)
def test_a_kind_that_nobody_serves_is_refused(store: Store, raw: dict[str, Any], why: str) -> None:
    version = store.version
    for write in (store.create, store.apply):
        with pytest.raises(NoMatch) as refusal:
            write(raw, as_client=True)
        assert str(refusal.value) == why
    assert store.version == version


def test_what_is_restored_from_a_dump_needs_no_definition(store: Store) -> None:
    assert store.apply(widget("w", uid="u"), restore=True)[1] == "created"


def test_a_version_that_is_not_served_is_no_match(store: Store) -> None:
    store.create(definition())
    with pytest.raises(NoMatch, match=r'in version "example\.com/v0"; Widget is served in example\.com/v1'):
        store.create(widget("w", "v0"), as_client=True)


@pytest.mark.parametrize(("scope", "namespace"), [("Namespaced", "default"), ("Cluster", "")])
def test_the_definition_decides_where_objects_live(store: Store, scope: str, namespace: str) -> None:
    store.create(definition(scope=scope))
    made = store.create(widget("w"))
    assert (made.kind, made.namespace) == ("Widget", namespace)
    assert store.apply(widget("w"))[0].namespace == namespace


def test_objects_go_with_their_definition(store: Store) -> None:
    store.create(definition())
    store.create(widget("a"))
    store.create(widget("b"))
    store.delete("CustomResourceDefinition", "", "widgets.example.com")
    assert not store.list("Widget")
    assert store.find("CustomResourceDefinition", "", "widgets.example.com") is None


def test_a_definition_waits_for_objects_with_finalizers(store: Store) -> None:
    store.create(definition())
    store.create(widget("held", finalizers=["example.com/hold"]))
    store.create(widget("free"))
    store.delete("CustomResourceDefinition", "", "widgets.example.com")
    assert [each.name for each in store.list("Widget")] == ["held"]
    with pytest.raises(Forbidden, match="create not allowed while custom resource definition is terminating"):
        store.create(widget("new"), as_client=True)
    store.merge_patch("Widget", "default", "held", {"metadata": {"finalizers": None}})
    assert store.find("CustomResourceDefinition", "", "widgets.example.com") is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        pytest.param({"scope": None}, "spec.scope: Required value", id="no-scope"),
        pytest.param({"scope": "World"}, 'spec.scope: Unsupported value: "World"', id="odd-scope"),
        pytest.param({"versions": []}, "must have exactly one version marked as storage version", id="no-version"),
        pytest.param(
            {"names": {"kind": "Widget", "plural": "Wid gets"}}, "spec.names.plural: Invalid value", id="plural"
        ),
        pytest.param(
            {"conversion": {"strategy": "Magic"}},
            'spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook"',
            id="a-conversion-that-is-none",
        ),
        pytest.param(
            {"conversion": {"strategy": "Webhook"}},
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            id="a-webhook-that-is-nowhere",
        ),
        pytest.param({"group": "other.org"}, 'must be spec.names.plural+"."+spec.group', id="another-name"),
    ],
)
def test_a_definition_must_make_sense(store: Store, change: dict[str, Any], fault: str) -> None:
    raw = definition()
    with pytest.raises(Invalid) as refusal:
        store.create({**raw, "spec": {**raw["spec"], **change}})
    assert fault in str(refusal.value)


def test_the_generation_counts_what_is_asked_for(store: Store) -> None:
    made = definition()
    made["spec"]["versions"][1]["subresources"] = {"status": {}}
    store.create(made)
    store.create({**widget("a"), "metadata": {"name": "a", "generation": 7}, "spec": {"size": 1}})
    generations = []
    for patch, subresource in (
        ({"metadata": {"labels": {"x": "1"}}}, ""),
        ({"spec": {"size": 2}}, ""),
        ({"spec": {"size": 2}}, ""),
        ({"status": {"size": 2}}, ""),
        ({"status": {"size": 2}}, "status"),
        ({"data": "x"}, ""),
    ):
        changed = store.merge_patch("Widget", "default", "a", patch, subresource=subresource)
        generations.append(changed.metadata["generation"])
    assert generations == [1, 2, 2, 2, 2, 3]


def test_without_a_status_of_its_own_the_status_counts_as_well(store: Store) -> None:
    store.create(definition())
    store.create(widget("a"))
    changed = store.merge_patch("Widget", "default", "a", {"status": {"size": 2}})
    assert changed.metadata["generation"] == 2
