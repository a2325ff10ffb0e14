"""Writes as requests."""

from typing import Any

import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.schemas.schema import schema_of
from kschedd.live.connection import ServerRequest
from kschedd.live.write_requests import MERGE, STRATEGIC, as_strategic, made_from, request_of
from kschedd.store.writes import (
    Bind,
    Create,
    Delete,
    Evict,
    FinalizeNamespace,
    Patch,
    Update,
    Write,
    patch_of,
    status_of,
)

Raw = dict[str, Any]


def held(kind: str, api_version: str = "v1", **parts: Any) -> Object:
    meta = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7"}
    return parse({"apiVersion": api_version, "kind": kind, "metadata": meta, **parts})


def requests(request: ServerRequest) -> tuple[str, str, Any]:
    return request.method, request.path, request.body


CLAIM = held("ResourceClaim", "resource.k8s.io/v1beta2", status={"reservedFor": [{"uid": "1"}, {"uid": "2"}]})


@pytest.mark.parametrize(
    ("write", "method", "path", "body"),
    [
        pytest.param(
            Bind("default", "a", "u", "n1"),
            "POST",
            "api/v1/namespaces/default/pods/a/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "a", "namespace": "default", "uid": "u"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            },
            id="bind",
        ),
        pytest.param(
            Delete("Pod", "default", "a", "u", 5),
            "DELETE",
            "api/v1/namespaces/default/pods/a",
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "u"},
                "gracePeriodSeconds": 5,
            },
            id="delete",
        ),
        pytest.param(
            Evict("default", "a"),
            "POST",
            "api/v1/namespaces/default/pods/a/eviction",
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "a", "namespace": "default"},
                "deleteOptions": {"apiVersion": "v1", "kind": "DeleteOptions"},
            },
            id="evict",
        ),
        pytest.param(
            Create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "x"}}),
            "POST",
            "apis/apps/v1/namespaces/x/deployments",
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "x"}},
            id="create",
        ),
        pytest.param(
            FinalizeNamespace("x"),
            "PUT",
            "api/v1/namespaces/x/finalize",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}, "spec": {"finalizers": []}},
            id="finalize",
        ),
        pytest.param(
            Bind("../..", "a/b?c", "", "n1"),
            "POST",
            "api/v1/namespaces/..%2F../pods/a%2Fb%3Fc/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "a/b?c", "namespace": "../.."},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            },
            id="names-that-lead-elsewhere",
        ),
    ],
)
def test_a_write_is_one_request(write: Write, method: str, path: str, body: Any) -> None:
    assert requests(request_of(write, None)) == (method, path, body)


def test_a_status_is_patched_strategically_in_the_version_that_is_served() -> None:
    request = request_of(status_of(CLAIM, {"reservedFor": [{"uid": "2"}, {"uid": "3"}]}), CLAIM)
    assert request.media_type == STRATEGIC
    assert requests(request) == (
        "PATCH",
        "apis/resource.k8s.io/v1beta2/namespaces/default/resourceclaims/a/status",
        {"metadata": {"uid": "u"}, "status": {"reservedFor": [{"uid": "3"}, {"$patch": "delete", "uid": "1"}]}},
    )


def test_a_version_that_is_held_here_is_replaced_by_the_servers() -> None:
    write = patch_of(CLAIM, {"metadata": {"labels": {"a": "b"}}}, exactly=True)
    assert made_from(write) == "7"
    assert request_of(write, CLAIM, "4711").body["metadata"] == {
        "uid": "u",
        "labels": {"a": "b"},
        "resourceVersion": "4711",
    }
    assert made_from(status_of(CLAIM, {}, guarded=True)) == "7"
    assert made_from(status_of(CLAIM, {})) == ""
    assert made_from(Bind("default", "a", "", "n1")) == ""


def test_an_update_sends_what_it_changes() -> None:
    """Fields that only the server knows are therefore kept."""
    volume = held("PersistentVolume", spec={"claimRef": None, "capacity": {"storage": "1Gi"}, "volumeMode": "Block"})
    spec = {"capacity": {"storage": "1Gi"}, "claimRef": {"name": "data", "uid": "c", "resourceVersion": "12"}}
    write = Update({**volume.raw, "spec": spec})
    request = request_of(write, volume, "4711")
    assert made_from(write) == "7"
    assert request.method == "PATCH"
    assert request.body == {
        "metadata": {"uid": "u", "resourceVersion": "4711"},
        "spec": {"volumeMode": None, "claimRef": {"name": "data", "uid": "c"}},
    }


def test_a_custom_kind_is_patched_as_it_says() -> None:
    write = Patch("Moon", "default", "a", {"status": {"conditions": []}}, "status")
    assert request_of(write, None).media_type == MERGE
    assert request_of(write, None).body == {"status": {"conditions": []}, "metadata": {}}


READY = {"type": "Ready", "status": "True"}
OURS = {"type": "PodScheduled", "status": "False", "message": "old"}


@pytest.mark.parametrize(
    ("seen", "wanted", "sent"),
    [
        pytest.param([READY], [READY, OURS], [OURS], id="added"),
        pytest.param(
            [READY, OURS],
            [READY, {**OURS, "message": "new"}],
            [{"message": "new", "type": "PodScheduled"}],
            id="changed",
        ),
        pytest.param([READY, OURS], [READY], [{"$patch": "delete", "type": "PodScheduled"}], id="removed"),
        pytest.param([READY], None, [{"$patch": "delete", "type": "Ready"}], id="all-removed"),
        pytest.param([READY], [READY], [], id="nothing"),
        pytest.param(None, [OURS], [OURS], id="first"),
        pytest.param(None, None, None, id="none"),
        pytest.param([3, READY], [OURS], [OURS, {"$patch": "delete", "type": "Ready"}], id="odd"),
    ],
)
def test_of_a_list_with_keys_what_changes_is_sent(seen: Any, wanted: Any, sent: Any) -> None:
    patch = as_strategic({"status": {"conditions": wanted}}, {"status": {"conditions": seen}}, schema_of("v1", "Pod"))
    assert patch == {"status": {"conditions": sent}}


def test_a_list_of_plain_values_is_added_to() -> None:
    patch = as_strategic(
        {"metadata": {"finalizers": ["a", "b"]}}, {"metadata": {"finalizers": ["a"]}}, schema_of("v1", "Pod")
    )
    assert patch == {"metadata": {"finalizers": ["b"]}}
    patch = as_strategic(
        {"metadata": {"finalizers": ["a"]}}, {"metadata": {"finalizers": ["a", "b"]}}, schema_of("v1", "Pod")
    )
    assert patch == {"metadata": {"finalizers": [], "$deleteFromPrimitiveList/finalizers": ["b"]}}
    patch = as_strategic(
        {"metadata": {"finalizers": None}}, {"metadata": {"finalizers": ["a"]}}, schema_of("v1", "Pod")
    )
    assert patch == {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
