"""Tests of escalation: a user gives no permission that the user does not have. Messages as in kube-apiserver 1.37."""

from typing import Any

import pytest

from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.errors import Forbidden, NotFound
from kschedd.store.store import Store
from tests.store.authorization.policies import binding, role

READ = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
WRITE = {"verbs": ["create"], "apiGroups": [""], "resources": ["pods"]}
BOB = UserInfo("bob", ("dev",), judged=True)


@pytest.fixture
def store() -> Store:
    """Return a cluster in which bob may get pods in the namespace default."""
    store = Store()
    store.create(role("reader", [READ]))
    store.create(role("writer", [WRITE]))
    store.create(binding("bob", "ClusterRole/reader", [{"kind": "User", "name": "bob"}], "default"))
    return store


def test_a_user_gives_what_the_user_has(store: Store) -> None:
    with store.on_behalf_of(BOB):
        store.create(role("own", [READ], "default"))
        store.create(binding("to-eve", "ClusterRole/reader", [{"kind": "User", "name": "eve"}], "default"))


def test_a_user_gives_no_more(store: Store) -> None:
    why = (
        'user "bob" (groups=["dev"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["create"]}'
    )
    with store.on_behalf_of(BOB):
        with pytest.raises(Forbidden) as refused:
            store.create(role("own", [READ, WRITE], "default"))
        assert str(refused.value) == f'roles.rbac.authorization.k8s.io "own" is forbidden: {why}'
        with pytest.raises(Forbidden) as refused:
            store.create(binding("b", "ClusterRole/writer", [], "default"))
        assert str(refused.value) == f'rolebindings.rbac.authorization.k8s.io "b" is forbidden: {why}'
        with pytest.raises(Forbidden, match="permissions not currently held"):
            store.create(binding("b", "ClusterRole/reader", []))  # in the whole cluster


def test_a_role_of_a_binding_must_exist(store: Store) -> None:
    with store.on_behalf_of(BOB), pytest.raises(NotFound) as refused:
        store.create(binding("b", "ClusterRole/gone", [], "default"))
    assert str(refused.value) == 'clusterrole.rbac.authorization.k8s.io "gone" not found'


@pytest.mark.parametrize(
    ("verb", "resource", "made"),
    [
        pytest.param("escalate", "roles", role("own", [WRITE], "default"), id="escalate"),
        pytest.param("bind", "clusterroles", binding("b", "ClusterRole/writer", [], "default"), id="bind"),
    ],
)
def test_the_verbs_escalate_and_bind_permit_more(store: Store, verb: str, resource: str, made: dict[str, Any]) -> None:
    rule = {"verbs": [verb], "apiGroups": ["rbac.authorization.k8s.io"], "resources": [resource]}
    store.create(role("more", [rule], "default"))
    store.create(binding("more", "Role/more", [{"kind": "User", "name": "bob"}], "default"))
    with store.on_behalf_of(BOB):
        store.create(made)


def test_an_update_is_checked_unless_only_owners_change(store: Store) -> None:
    store.create(role("own", [WRITE], "default"))
    with store.on_behalf_of(BOB):
        store.merge_patch("Role", "default", "own", {"metadata": {"finalizers": ["example.com/x"]}})
        with pytest.raises(Forbidden, match="not currently held"):
            store.merge_patch("Role", "default", "own", {"metadata": {"labels": {"a": "b"}}})


def test_an_aggregation_needs_every_permission(store: Store) -> None:
    summed = {**role("sum", []), "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    with store.on_behalf_of(BOB), pytest.raises(Forbidden) as refused:
        store.create(summed)
    assert str(refused.value).endswith("must have cluster-admin privileges to use the aggregationRule")


def test_other_users_are_not_checked(store: Store) -> None:
    with store.on_behalf_of(UserInfo("bob", ("dev",))):
        store.create(role("own", [WRITE], "default"))
    with store.on_behalf_of(UserInfo("root", ("system:masters",), judged=True)):
        store.create(role("other", [WRITE], "default"))
