"""Tests of requests to write objects, from HTTP and from the socket."""

from typing import Any

import pytest

from kschedd.service.operations.serving import serve
from kschedd.service.request import DeleteOptions, PatchBody, Request, WriteOptions
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.errors import BadRequest, Invalid, InvalidScale, NotFound, Refused
from kschedd.store.managing import with_resolved_entries
from kschedd.store.store import Store
from tests.actors.clusters import deployment, node, pod

ANN = UserInfo("ann", ("system:authenticated",))
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}


@pytest.fixture
def store() -> Store:
    made = Store(now=lambda: 0.0)
    for raw in (node(), pod(), deployment()):
        made.create(raw, manager="kubectl-create")
    return made


def misspelt(**more: Any) -> dict[str, Any]:
    return {**CONFIG, "dada": {}, **more}


def test_warnings_of_all_that_looks_at_an_object_are_in_its_response(store: Store) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}
    body = misspelt()
    body["metadata"] = {**body["metadata"], "ownerReferences": [owner, owner]}
    response = serve(store, Request("create", "ConfigMap", body=body, options=WriteOptions(validation="Warn")))
    assert response.warnings[0] == 'unknown field "dada"'
    assert response.warnings[1].endswith("duplicate UID(s) observed: u")
    assert response.object.metadata["ownerReferences"] == [owner]


def test_a_refusal_has_the_warnings_of_its_request(store: Store) -> None:
    options = WriteOptions(validation="Warn")
    with pytest.raises(NotFound) as refused:
        serve(store, Request("update", "ConfigMap", body=misspelt(), options=options))
    assert refused.value.request_warnings == ('unknown field "dada"',)


def test_a_request_is_made_in_the_name_of_its_user(store: Store) -> None:
    labels = {"pod-security.kubernetes.io/warn": "restricted"}
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": labels}})
    response = serve(store, Request("create", "Pod", "strict", body=pod("p", namespace="strict"), user=ANN))
    assert [text for text in response.warnings if text.startswith("would violate PodSecurity")]


def test_a_dry_run_writes_nothing_whatever_the_verb(store: Store) -> None:
    version, tried = store.version, WriteOptions(dry_run=True, manager="m")
    bind = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "web"}, "target": {"name": "n1"}}
    patch = PatchBody("merge", {"metadata": {"labels": {"a": "b"}}})
    config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"a": "b"}}}
    for request in (
        Request("create", "ConfigMap", body=CONFIG, options=tried),
        Request("update", "Lease", body=LEASE, options=tried),
        Request("patch", "Pod", "default", "web", body=patch, options=tried),
        Request("apply", "Pod", "default", "web", body=config, options=tried),
        Request("patch", "Deployment", "default", "web", "scale", PatchBody("merge", {"spec": {"replicas": 9}}), tried),
        Request("create", "Pod", "default", "web", "binding", bind, tried),
        Request("create", "Pod", "default", "web", "eviction", deletion=DeleteOptions(dry_run=True)),
        Request("delete", "Pod", "default", "web", deletion=DeleteOptions(dry_run=True)),
    ):
        serve(store, request)
        assert store.version == version, request.verb


def test_an_update_creates_what_is_missing_of_some_kinds(store: Store) -> None:
    assert serve(store, Request("update", "Lease", body=LEASE)).action == "created"
    with pytest.raises(Invalid, match="must be specified for an update"):  # for it is there now
        serve(store, Request("update", "Lease", body=LEASE))
    with pytest.raises(NotFound):
        serve(store, Request("update", "ConfigMap", body=CONFIG))


def test_an_object_that_names_another_place_than_its_request_is_refused(store: Store) -> None:
    with pytest.raises(BadRequest, match="the namespace of the provided object does not match"):
        serve(store, Request("create", "ConfigMap", "other", body={**CONFIG, "metadata": _at("default")}))
    with pytest.raises(BadRequest, match=r"the name of the object \(c\) does not match the name on the URL \(d\)"):
        serve(store, Request("update", "ConfigMap", "default", "d", body=CONFIG))


def _at(namespace: str) -> dict[str, str]:
    return {"name": "c", "namespace": namespace}


def test_a_new_object_has_no_resource_version(store: Store) -> None:
    body = {**CONFIG, "metadata": {"name": "c", "resourceVersion": "7"}}
    with pytest.raises(Refused, match="resourceVersion should not be set on objects to be created"):
        serve(store, Request("create", "ConfigMap", body=body))
    assert store.find("ConfigMap", "default", "c") is None
    body["metadata"]["resourceVersion"] = "0"
    serve(store, Request("create", "ConfigMap", body=body))
    assert store.get("ConfigMap", "default", "c").metadata["resourceVersion"] != "0"


def test_a_scale_is_written_by_its_subresource(store: Store) -> None:
    def scaled(replicas: int) -> Request:
        patch, options = PatchBody("merge", {"spec": {"replicas": replicas}}), WriteOptions(manager="m")
        return Request("patch", "Deployment", "default", "web", "scale", patch, options)

    response = serve(store, scaled(5))
    assert response.before is not None
    assert (response.before.spec["replicas"], response.object.spec["replicas"]) == (3, 5)
    managed = with_resolved_entries(response.object.raw)["metadata"]["managedFields"]
    found = [(each["manager"], each.get("subresource")) for each in managed]
    assert ("m", "scale") in found
    with pytest.raises(InvalidScale, match=r'Scale.autoscaling "web" is invalid: spec.replicas'):
        serve(store, scaled(-1))
