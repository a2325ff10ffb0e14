"""Tests of the permissions that requests on the socket need."""

from typing import Any

import attrs
import pytest

from kschedd.service.operations.serving import serve
from kschedd.service.request import DeleteOptions, PatchBody, Request, WriteOptions
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.errors import AccessDenied
from kschedd.store.store import Store
from tests.store.authorization.policies import binding, role
from tests.store.definitions import definition

EVE = UserInfo("eve", ("system:authenticated",), judged=True)
APPLY = WriteOptions(server_side=False)
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


def refused(store: Store, request: Request) -> str:
    with pytest.raises(AccessDenied) as denied:
        serve(store, request)
    return str(denied.value)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param(Request("create", body=CONFIG), 'configmaps is forbidden: User "eve" cannot create', id="create"),
        pytest.param(
            Request("update", body=CONFIG), 'configmaps "c" is forbidden: User "eve" cannot update', id="update"
        ),
        pytest.param(
            Request("apply", body={**CONFIG, "metadata": {"name": "new"}}),
            'configmaps is forbidden: User "eve" cannot create',
            id="an-apply-of-a-new-object",
        ),
        pytest.param(
            Request("patch", "Node", name="n1", body=PatchBody("merge", {})),
            'nodes "n1" is forbidden: User "eve" cannot patch resource "nodes" in API group "" at the cluster scope',
            id="patch",
        ),
        pytest.param(
            Request("delete", "Pod", "default", "p", deletion=DeleteOptions()),
            'pods "p" is forbidden: User "eve" cannot delete resource "pods"',
            id="delete",
        ),
        pytest.param(
            Request("create", "Pod", "default", "p", "binding", {}),
            'pods "p" is forbidden: User "eve" cannot create resource "pods/binding"',
            id="binding",
        ),
    ],
)
def test_a_write_needs_the_permission_for_its_object(store: Store, request_: Request, message: str) -> None:

    assert refused(store, attrs.evolve(request_, user=EVE)).startswith(message)


def test_an_apply_of_an_existing_object_needs_the_verb_patch(store: Store) -> None:
    rule = {"verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"]}
    store.create(role("creator", [rule]))
    store.create(binding("eve", "ClusterRole/creator", [{"kind": "User", "name": "eve"}]))
    serve(store, Request("apply", body=CONFIG, options=APPLY, user=EVE))
    assert 'User "eve" cannot patch' in refused(store, Request("apply", body=CONFIG, options=APPLY, user=EVE))


def test_a_custom_resource_is_named_by_its_definition(store: Store) -> None:
    defined: dict[str, Any] = definition()
    store.create(defined)
    group, plural = defined["spec"]["group"], defined["spec"]["names"]["plural"]
    kind = defined["spec"]["names"]["kind"]
    body = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "w"}}
    message = f'{plural}.{group} is forbidden: User "eve" cannot create resource "{plural}" in API group "{group}"'
    assert refused(store, Request("create", body=body, user=EVE)).startswith(message)


def test_other_users_and_checked_requests_pass(store: Store) -> None:
    serve(store, Request("create", body=CONFIG, user=UserInfo("eve")))
    serve(store, Request("apply", body={**CONFIG, "data": {"a": "b"}}, options=APPLY, user=EVE, authorized=True))
