"""Tests of RBAC over HTTP: enforcement, impersonation and reviews. Messages as in kube-apiserver 1.37."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kschedd.access.addresses import Address
from kschedd.access.credentials import Credentials, ListenSettings
from kschedd.access.tokens import StaticTokens
from kschedd.access.users import User
from kschedd.apiserver.access import Access
from tests.apiserver.asking import PODS, Asker, asking, pod
from tests.store.authorization.policies import binding, role

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
BOB = {"authorization": "Bearer bob"}
ROOT = {"authorization": "Bearer root"}


@pytest.fixture
async def api(autojump_clock: Any) -> AsyncIterator[Asker]:
    """Yield an API with --authorization-mode RBAC, in which bob may read the namespace default."""
    tokens = StaticTokens.of({"bob": User("bob", ("system:authenticated",)), "root": User("root", ("system:masters",))})
    settings = ListenSettings(Address("0.0.0.0", 6443), rbac=True)
    async with asking(access=Access(Credentials(settings, tokens, None))) as api:
        viewer = binding("bob", "ClusterRole/view", [{"kind": "User", "name": "bob"}], "default")
        await api.create(f"{RBAC}/namespaces/default/rolebindings", viewer, headers=ROOT)
        yield api


@pytest.fixture
async def open_api(autojump_clock: Any) -> AsyncIterator[Asker]:
    """Yield an API without authorization, on loopback."""
    async with asking() as api:
        viewer = binding("bob", "ClusterRole/view", [{"kind": "User", "name": "bob"}], "default")
        await api.create(f"{RBAC}/namespaces/default/rolebindings", viewer)
        yield api


async def test_a_user_may_do_what_the_roles_allow(api: Asker) -> None:
    assert (await api.ask("GET", PODS, headers=BOB)).status == 200
    assert (await api.ask("POST", PODS, pod("a"), headers=ROOT)).status == 201
    refused = await api.ask("POST", PODS, pod("b"), headers=BOB)
    assert (refused.status, refused.json) == (
        403,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'pods is forbidden: User "bob" cannot create resource "pods" in API group "" in the namespace '
            '"default"',
            "reason": "Forbidden",
            "details": {"kind": "pods"},
            "code": 403,
        },
    )
    refused = await api.ask("GET", "/apis/example.com/v1/widgets/w", headers=BOB)
    assert refused.json["message"].startswith('widgets.example.com "w" is forbidden: User "bob" cannot get')
    refused = await api.ask("GET", "/metrics", headers=BOB)
    assert refused.json["message"] == 'forbidden: User "bob" cannot get path "/metrics"'
    for path in ("/api", "/apis/apps/v1", "/version", "/readyz", "/openapi/v3"):
        assert (await api.ask("GET", path, headers=BOB)).status == 200


async def test_an_apply_that_creates_needs_the_verb_create(api: Asker) -> None:
    patcher = role("patcher", [{"verbs": ["patch"], "apiGroups": [""], "resources": ["configmaps"]}], "default")
    await api.create(f"{RBAC}/namespaces/default/roles", patcher, headers=ROOT)
    bound = binding("patcher", "Role/patcher", [{"kind": "User", "name": "bob"}], "default")
    await api.create(f"{RBAC}/namespaces/default/rolebindings", bound, headers=ROOT)
    target = "/api/v1/namespaces/default/configmaps/c?fieldManager=me"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    apply = {"content_type": "application/apply-patch+yaml"}
    refused = await api.ask("PATCH", target, config, headers=BOB, **apply)
    assert refused.status == 403
    assert 'User "bob" cannot create resource "configmaps"' in refused.json["message"]
    assert (await api.ask("PATCH", target, config, headers=ROOT, **apply)).status == 201
    assert (await api.ask("PATCH", target, {**config, "data": {"a": "b"}}, headers=BOB, **apply)).status == 200


async def test_an_impersonation_needs_permission_for_each_part(api: Asker) -> None:
    refused = await api.ask("GET", PODS, headers={**BOB, "impersonate-user": "eve"})
    assert refused.json["message"] == (
        'pods is forbidden: User "bob" cannot impersonate-on:user-info:list resource "pods" in API group "" in the '
        'namespace "default"'
    )
    acting = role("acting", [{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users", "groups"]}])
    await api.create(f"{RBAC}/clusterroles", acting, headers=ROOT)
    bound = binding("acting", "ClusterRole/acting", [{"kind": "User", "name": "bob"}])
    await api.create(f"{RBAC}/clusterrolebindings", bound, headers=ROOT)
    refused = await api.ask("GET", PODS, headers={**BOB, "impersonate-user": "eve"})
    assert refused.json["message"].startswith('pods is forbidden: User "eve" cannot list')
    headers = {**BOB, "impersonate-user": "eve", "impersonate-group": "system:masters"}
    assert (await api.ask("GET", PODS, headers=headers)).status == 200
    refused = await api.ask("GET", PODS, headers={**headers, "impersonate-uid": "7"})
    assert refused.json["message"].startswith('pods is forbidden: User "bob" cannot impersonate-on:user-info:list')


async def test_escalation_is_refused(api: Asker) -> None:
    giver = role("giver", [{"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]}])
    await api.create(f"{RBAC}/clusterroles", giver, headers=ROOT)
    bound = binding("giver", "ClusterRole/giver", [{"kind": "User", "name": "bob"}])
    await api.create(f"{RBAC}/clusterrolebindings", bound, headers=ROOT)
    wanted = role("more", [{"verbs": ["delete"], "apiGroups": [""], "resources": ["pods"]}], "default")
    # the verb escalate is among the verbs of giver, so bob loses it first
    giver["rules"][0]["verbs"] = ["create"]
    assert (await api.ask("PUT", f"{RBAC}/clusterroles/giver", giver, headers=ROOT)).status == 200
    refused = await api.ask("POST", f"{RBAC}/namespaces/default/roles", wanted, headers=BOB)
    assert refused.status == 403
    assert refused.json["message"].endswith('{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}')


def access(user: str, verb: str, resource: str, namespace: str = "default", **more: Any) -> dict[str, Any]:
    asked = {"verb": verb, "resource": resource, "namespace": namespace, **more}
    return {"spec": {"user": user, "resourceAttributes": asked}}


async def test_a_subject_access_review_is_judged_by_roles_even_where_all_is_allowed(open_api: Asker) -> None:
    reviews = f"{AUTHORIZATION}/subjectaccessreviews"
    answer = await open_api.create(reviews, access("bob", "list", "pods"))
    assert answer["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by RoleBinding "bob/default" of ClusterRole "view" to User "bob"',
    }
    assert (await open_api.create(reviews, access("bob", "delete", "pods")))["status"] == {"allowed": False}
    path = {"spec": {"groups": ["system:authenticated"], "nonResourceAttributes": {"path": "/api/v1", "verb": "get"}}}
    assert (await open_api.create(reviews, path))["status"]["allowed"]
    local = {**access("bob", "list", "pods"), "metadata": {"namespace": "default"}}
    answer = await open_api.create(f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews", local)
    assert answer["status"]["allowed"]


async def test_an_impersonated_user_is_judged_even_where_all_is_allowed(open_api: Asker) -> None:
    acting = {"impersonate-user": "bob"}
    assert (await open_api.ask("GET", PODS, headers=acting)).status == 200
    assert (await open_api.ask("POST", PODS, pod("a"), headers=acting)).status == 403
    reviews = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    own = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": "default"}}}
    assert not (await open_api.create(reviews, own, headers=acting))["status"]["allowed"]
    assert (await open_api.create(reviews, own))["status"] == {"allowed": True}
    rules = {"spec": {"namespace": "default"}}
    answer = await open_api.create(f"{AUTHORIZATION}/selfsubjectrulesreviews", rules, headers=acting)
    assert {"verbs": ["get", "list", "watch"], "apiGroups": ["", "events.k8s.io"], "resources": ["events"]} in (
        answer["status"]["resourceRules"]
    )
    assert "evaluationError" not in answer["status"]


async def test_an_own_review_reports_what_is_enforced(api: Asker) -> None:
    reviews = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    own = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}}
    assert (await api.create(reviews, own, headers=BOB))["status"]["allowed"]
    own = {"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "default"}}}
    assert (await api.create(reviews, own, headers=BOB))["status"] == {"allowed": False}


@pytest.mark.parametrize(
    ("resource", "body", "message"),
    [
        pytest.param(
            "subjectaccessreviews",
            {"spec": {"resourceAttributes": {"verb": "get"}}},
            '.authorization.k8s.io "" is invalid: spec.user: Invalid value: "": at least one of '
            "user or group must be specified",
            id="without-a-user",
        ),
        pytest.param(
            "selfsubjectaccessreviews",
            {"spec": {}},
            '.authorization.k8s.io "" is invalid: spec: Invalid value: null: exactly one of '
            "nonResourceAttributes or resourceAttributes must be specified",
            id="without-attributes",
        ),
        pytest.param(
            "namespaces/default/localsubjectaccessreviews",
            {**access("bob", "get", "pods", "other"), "metadata": {"namespace": "default"}},
            '.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid '
            'value: "other": must match metadata.namespace',
            id="of-another-namespace",
        ),
    ],
)
async def test_an_invalid_review_is_rejected(open_api: Asker, resource: str, body: Any, message: str) -> None:
    answer = await open_api.ask("POST", f"{AUTHORIZATION}/{resource}", body)
    assert (answer.status, answer.json["message"]) == (422, message)
