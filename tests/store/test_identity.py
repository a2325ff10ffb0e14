"""Tests that no write changes the identity of an object, and of the API server's messages about such writes."""

from typing import Any

import pytest

from kschedd.store.errors import ApiError, BadRequest, Invalid
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map, node, pod, workload

Raw = dict[str, Any]


@pytest.fixture
def store() -> Store:
    return Store(now=Clock())


REFUSED = [
    pytest.param({"kind": "Pod"}, Invalid, 'patch: Invalid value: .*: no kind "Pod" is registered', id="another-kind"),
    pytest.param({"kind": "Foo"}, Invalid, 'no kind "Foo" is registered for version "apps/v1"', id="no-kind-at-all"),
    pytest.param({"apiVersion": "v2"}, Invalid, 'no kind "Deployment" is registered for version "v2"', id="version"),
    pytest.param({"apiVersion": 5}, Invalid, 'registered for version "5"', id="version-is-a-number"),
    pytest.param({"apiVersion": None}, BadRequest, r"\(web based on URL\) was undeterminable", id="no-version"),
    pytest.param({"metadata": None}, BadRequest, r"\(web based on URL\) was undeterminable", id="no-metadata"),
    pytest.param({"metadata": {"name": None}}, BadRequest, "name must be provided", id="no-name"),
    pytest.param(
        {"metadata": {"name": "other"}},
        BadRequest,
        r"^the name of the object \(other\) does not match the name on the URL \(web\)$",
        id="another-name",
    ),
    pytest.param(
        {"metadata": {"namespace": "kube-system"}},
        BadRequest,
        "^the namespace of the provided object does not match the namespace sent on the request$",
        id="another-namespace",
    ),
    pytest.param({"metadata": {"uid": "x"}}, Invalid, 'metadata.uid: Invalid value: "x": field is immutable', id="uid"),
    pytest.param({"metadata": "x"}, Invalid, "metadata", id="metadata-is-text"),
]


@pytest.mark.parametrize("subresource", ["", "status"])
@pytest.mark.parametrize(("patch", "error", "words"), REFUSED)
def test_a_patch_may_not_make_it_another_object(
    store: Store, patch: Raw, error: type[ApiError], words: str, subresource: Any
) -> None:
    made = store.create(workload("Deployment"))
    version = store.version
    with pytest.raises(error, match=words):
        store.merge_patch("Deployment", "default", "web", patch, subresource=subresource)
    assert store.version == version
    assert store.get("Deployment", "default", "web") is made


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"kind": None}, id="no-kind-is-the-kind-it-has"),
        pytest.param({"kind": "Deployment", "apiVersion": "apps/v1"}, id="the-same-kind"),
        pytest.param({"metadata": {"name": "web", "namespace": None}}, id="no-namespace-is-the-one-it-has"),
        pytest.param({"metadata": {"creationTimestamp": None, "generation": 7}}, id="what-is-not-up-to-the-caller"),
    ],
)
def test_a_patch_may_repeat_or_leave_out_what_the_object_is(store: Store, patch: Raw) -> None:
    made = store.create(workload("Deployment"))
    assert store.merge_patch("Deployment", "default", "web", patch) is made


def test_a_namespace_in_a_patch_of_a_cluster_scoped_object_is_passed_over(store: Store) -> None:
    made = store.create(node())
    assert store.merge_patch("Node", "", "node-1", {"metadata": {"namespace": "kube-system"}}) is made


@pytest.mark.parametrize("manifest", [pod(), workload("Deployment")], ids=["Pod", "Deployment"])
def test_an_update_or_an_apply_in_a_version_that_is_not_read(store: Store, manifest: Raw) -> None:
    store.create(manifest)
    wrong = {**manifest, "apiVersion": manifest["apiVersion"].replace("v1", "v9")}
    kind = manifest["kind"]
    words = f'^{kind} in version "{wrong["apiVersion"]}" cannot be handled as a {kind}: no kind "{kind}" is registered'
    with pytest.raises(BadRequest, match=words):
        store.update(wrong)
    with pytest.raises(BadRequest, match=words):
        store.apply(wrong)


def test_a_custom_resource_keeps_its_version(store: Store) -> None:
    widget = {**config_map("w"), "kind": "Widget", "apiVersion": "example.com/v1"}
    store.create(widget)
    words = r"the API version in the data \(example.com/v2\) does not match the expected API version \(example.com/v1\)"
    with pytest.raises(BadRequest, match=words):
        store.merge_patch("Widget", "default", "w", {"apiVersion": "example.com/v2"})


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        pytest.param({"kind": "Deployment", "apiVersion": "v1"}, 'no matches for kind "Deployment"', id="core-group"),
        pytest.param({"kind": "wi dget", "apiVersion": "example.com/v1"}, "kind: Invalid value", id="kind"),
        pytest.param({"kind": "Widget", "apiVersion": "No Group/v1"}, "apiVersion: Invalid value", id="group"),
        pytest.param({"kind": "Widget", "apiVersion": "example.com/1.0"}, "apiVersion: Invalid value", id="version"),
        pytest.param(
            {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "No_Good"}},
            'metadata.name: Invalid value: "No_Good": a lowercase RFC 1123 subdomain',
            id="name",
        ),
        pytest.param({"kind": "Namespace", "apiVersion": "v1", "spec": "text"}, "spec: Invalid value", id="spec"),
        pytest.param({"kind": "Namespace", "apiVersion": "v1", "spec": {"finalizers": "x"}}, "must be a list", id="f"),
    ],
)
def test_what_could_not_be_there_in_a_cluster_is_refused(store: Store, raw: Raw, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        store.create({"metadata": {"name": "x", "namespace": "default"}, **raw})


def test_a_kind_of_another_group_has_rules_of_its_own(store: Store) -> None:
    odd = {"kind": "Namespace", "apiVersion": "example.com/v1", "metadata": {"name": "n"}, "spec": "text"}
    made = store.create({**odd, "metadata": {"name": "n", "finalizers": ["example.com/f"]}})
    assert made.kind == "Namespace.example.com"
    store.delete(made.kind, "", "n")
    store.merge_patch(made.kind, "", "n", {"metadata": {"finalizers": None}})
    assert store.find(made.kind, "", "n") is None


def test_a_definition_that_is_being_cleaned_up_can_still_be_written(store: Store) -> None:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    meta = {"name": "widgets.example.com", "finalizers": ["customresourcecleanup.apiextensions.k8s.io"]}
    kind = "CustomResourceDefinition"
    store.create({"apiVersion": "apiextensions.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec})
    changed = store.merge_patch(kind, "", "widgets.example.com", {"metadata": {"labels": {"a": "b"}}})
    assert changed.labels == {"a": "b"}
