"""Tests of creating objects: generated names, metadata that the server sets, and rejections."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from kschedd.store.admission.chain import Admission
from kschedd.store.admission.request import UserInfo
from kschedd.store.errors import ApiError, Invalid, NoMatch, TooLarge, Undecodable
from kschedd.store.store import Store
from tests.registry.certificate_requests import REQUEST
from tests.store.definitions import definition, widget
from tests.store.manifests import Clock, config_map, node, pod, workload

Raw = dict[str, Any]
OLD = "2020-01-01T00:00:00Z"


@pytest.fixture
def store() -> Store:
    made = Store(now=Clock())
    made.create(definition())
    return made


def given(raw: Raw, **meta: Any) -> Raw:
    return {**raw, "metadata": {**raw["metadata"], **meta}}


MAKERS = {"Pod": pod, "ConfigMap": config_map, "Widget": widget}


@pytest.mark.parametrize("kind", [None, "", 7, ["Pod"]])
def test_an_object_has_a_kind(store: Store, kind: Any) -> None:
    with pytest.raises(Invalid, match="kind: Required value"):
        store.create({**pod(), "kind": kind})


@pytest.mark.parametrize("metadata", [7, "x", ["name"]])
def test_metadata_are_a_map(store: Store, metadata: Any) -> None:
    with pytest.raises(Undecodable, match="metadata"):
        store.create({**config_map("c"), "metadata": metadata})
    frozen = MappingProxyType({"name": "c", "labels": {}})
    assert store.create({**config_map("c"), "metadata": frozen}).name == "c"


@pytest.mark.parametrize("kind", MAKERS)
def test_without_a_name_it_is_refused_or_gets_one(store: Store, kind: str) -> None:
    make = MAKERS[kind]
    for name in (None, ""):
        with pytest.raises(ApiError, match=r"metadata\.name: Required value"):
            store.create(given(make("x"), name=name))
        with pytest.raises(ApiError):
            store.create(given(make("x"), name=name, generateName=7))
        made = store.create(given(make("x"), name=name, generateName="base-"))
        assert made.name.startswith("base-")
        assert len(made.name) == len("base-") + 5
    for wrong in (7, 0, False):
        with pytest.raises(Undecodable, match="name"):
            store.create(given(make("x"), name=wrong))


def test_what_of_a_kind_without_namespaces_names_one_has_none(store: Store) -> None:
    assert store.create(given(node(), namespace="x")).namespace == ""
    assert store.create(given(config_map("c"), namespace="")).namespace == "default"


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("restore", [False, True])
def test_what_the_server_decides_of_the_metadata(store: Store, kind: str, restore: bool) -> None:
    stated = {
        "uid": "u-1",
        "creationTimestamp": OLD,
        "generation": 7,
        "selfLink": "/x",
        "resourceVersion": "3",
        "managedFields": [{"manager": "m"}],
    }
    made = store.create(given(MAKERS[kind]("x"), **stated), restore=restore)
    meta = made.metadata
    assert (meta["uid"] == "u-1", meta["creationTimestamp"] == OLD) == (restore, restore)
    assert meta["resourceVersion"] == str(store.version)
    assert "selfLink" not in meta
    assert "managedFields" not in meta
    if kind == "Pod":
        assert meta["generation"] == (7 if restore else 1)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_uid_that_another_object_has_is_not_restored(store: Store, kind: str) -> None:
    store.create(given(config_map("first"), uid="u-1"), restore=True)
    assert store.create(given(MAKERS[kind]("x"), uid="u-1"), restore=True).uid != "u-1"


@pytest.mark.parametrize("kind", MAKERS)
def test_a_new_object_is_not_being_deleted(store: Store, kind: str) -> None:
    stated = {"deletionTimestamp": OLD, "deletionGracePeriodSeconds": 5}
    made = store.create(given(MAKERS[kind]("x"), **stated))
    assert not made.deleting
    assert "deletionGracePeriodSeconds" not in made.metadata


@pytest.mark.parametrize("restore", [False, True])
@pytest.mark.parametrize("raw", [pod("p"), workload("Deployment", "p")], ids=["pod", "deployment"])
def test_a_status_is_restored_and_not_created(store: Store, raw: Raw, restore: bool) -> None:
    status = {"message": "m"} if raw["kind"] == "Pod" else {"replicas": 2}
    made = store.create({**raw, "status": status}, restore=restore)
    (field,) = status
    assert (field in made.status) is restore


def test_a_job_has_the_labels_of_its_pods_unless_it_has_some(store: Store) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
    }
    made = store.create(job)
    assert made.metadata["labels"]["job-name"] == "j"
    assert made.metadata["labels"]["controller-uid"] == made.uid
    assert made.spec["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": made.uid}
    labelled = store.create(given(job, name="k", labels={"a": "b"}))
    assert labelled.metadata["labels"] == {"a": "b"}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_too_large_is_refused(kind: str) -> None:
    store = Store(now=Clock(), max_object_bytes=4_000)
    store.create(definition())
    with pytest.raises(TooLarge):
        store.create(given(MAKERS[kind]("x"), annotations={"a": "x" * 4_000}))
    assert store.count(kind) == 0


def test_a_pod_of_another_version_is_none(store: Store) -> None:
    with pytest.raises(NoMatch):
        store.create({**pod(), "apiVersion": "v2"}, as_client=True)
    with pytest.raises(Invalid, match=r"apiVersion: Unsupported value: null"):
        store.create({name: value for name, value in pod("q").items() if name != "apiVersion"})


def test_a_definition_that_cannot_be_is_refused() -> None:
    store = Store(now=Clock())
    wrong = definition()
    wrong["spec"]["versions"][1]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "properties": {"a": {"pattern": "("}},
    }
    with pytest.raises(ApiError):
        store.create(wrong)
    assert store.count("CustomResourceDefinition") == 0


def test_a_certificate_is_asked_for_in_the_name_of_who_asks(store: Store) -> None:
    raw = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "r"},
        "spec": {
            "request": REQUEST,
            "signerName": "example.com/s",
            "usages": ["client auth"],
            "username": "somebody",
            "groups": ["g"],
            "uid": "u",
        },
    }

    def asked_by(name: str) -> Mapping[str, Any]:
        spec = store.create(given(raw, name=name)).spec
        return {field: spec[field] for field in ("username", "groups", "uid") if field in spec}

    assert asked_by("of-nobody") == {}
    with store.on_behalf_of(UserInfo("me", ("mine",))):
        assert asked_by("of-mine") == {"username": "me", "groups": ["mine"]}
    with store.on_behalf_of(UserInfo("me", ())):
        assert asked_by("of-no-group") == {"username": "me"}
    assert store.create(given(raw, name="of-a-dump"), restore=True).spec["username"] == "somebody"


@pytest.mark.parametrize("kind", MAKERS)
def test_fields_are_those_of_who_made_them(store: Store, kind: str) -> None:
    made = store.create(given(MAKERS[kind]("x"), labels={"a": "b"}), manager="me")
    assert [(entry["manager"], entry["operation"]) for entry in made.metadata["managedFields"]] == [("me", "Update")]
    assert "managedFields" not in store.create(given(MAKERS[kind]("y"), labels={"a": "b"})).metadata


def test_what_admission_adds_is_in_the_pod_and_what_it_warns_of_is_told() -> None:
    store = Store(now=Clock(), admission=Admission())
    store.merge_patch(
        "Namespace", "", "default", {"metadata": {"labels": {"pod-security.kubernetes.io/warn": "restricted"}}}
    )
    with store.on_behalf_of(UserInfo("me", ())) as remarks:
        made = store.create(pod("p"))
    assert made.spec["tolerations"], "DefaultTolerationSeconds"
    assert any("would violate PodSecurity" in text for text in remarks.warnings), remarks.warnings


def test_an_object_is_in_the_namespace_that_it_names(store: Store) -> None:
    for kind, make in MAKERS.items():
        assert store.create(given(make("x"), namespace="kube-system")).namespace == "kube-system"
        assert store.find(kind, "default", "x") is None


def test_what_a_dump_has_of_a_custom_resource_is_taken_as_it_is() -> None:
    store = Store(now=Clock())
    strict = definition()
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    for version in strict["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": schema}
    store.create(strict)
    with pytest.raises(ApiError, match="size"):
        store.create(widget("a"))
    assert "more" not in store.create({**widget("b"), "size": 1, "more": 2}).raw
    assert store.create({**widget("c"), "more": 2}, restore=True).raw["more"] == 2


def test_a_generation_that_no_object_can_have_is_passed_over(store: Store) -> None:
    assert store.create(given(pod("p"), generation=-5)).metadata["generation"] == 1


def test_annotations_of_admission_come_beside_those_of_the_pod(store: Store) -> None:
    limits = [{"type": "Container", "defaultRequest": {"memory": "1Gi"}}]
    meta = {"name": "l", "namespace": "default"}
    store.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": limits}})
    made = store.create(given(pod("p"), annotations={"a": "b"}))
    assert made.metadata["annotations"]["a"] == "b"
    assert "memory request for container app" in made.metadata["annotations"]["kubernetes.io/limit-ranger"]
    assert made.spec["containers"][0]["resources"]["requests"]["memory"] == "1Gi"
    assert list(store.create(pod("q")).metadata["annotations"]) == ["kubernetes.io/limit-ranger"]
