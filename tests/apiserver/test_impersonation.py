"""Tests of the permissions that an impersonation needs: constrained modes since 1.36, and the verb impersonate."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kschedd.access.addresses import Address
from kschedd.access.credentials import Credentials, ListenSettings
from kschedd.access.requests import AccessRequest
from kschedd.access.tokens import StaticTokens
from kschedd.access.users import User
from kschedd.apiserver.access import Access
from kschedd.apiserver.impersonation import impersonation_modes
from kschedd.config.versions.kube_versions import V1_35, V1_37, KubernetesVersion
from tests.apiserver.asking import PODS, Asker, asking
from tests.apiserver.test_rbac import BOB, RBAC, ROOT
from tests.store.authorization.policies import binding, role

BY = User("ann", ())
ON_PODS = AccessRequest(BY, "list", "", "pods", namespace="web")
HEADERS = {
    "impersonate-user": "system:serviceaccount:web:runner",
    "impersonate-group": "dev",
    "impersonate-uid": "7",
    "impersonate-extra-team": "blue",
}


def modes(constrained: bool = True, by: User = BY, **headers: str) -> list[list[tuple[str, str, str, str]]]:
    """Return verb, group, resource and name of each permission, by mode."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = AccessRequest(by, "list", "", "pods", namespace="web")
    return [
        [(each.verb, each.group, each.combined_resource, each.name) for each in mode.needed]
        for mode in impersonation_modes(named, request, constrained=constrained)
    ]


def test_each_part_needs_the_verb_impersonate() -> None:
    (mode,) = impersonation_modes(HEADERS, ON_PODS, constrained=False)
    assert mode.needed == [
        AccessRequest(BY, "impersonate", "", "serviceaccounts", "", "web", "runner"),
        AccessRequest(BY, "impersonate", "", "groups", name="dev"),
        AccessRequest(BY, "impersonate", "authentication.k8s.io", "userextras", "team", name="blue"),
        AccessRequest(BY, "impersonate", "authentication.k8s.io", "uids", name="7"),
    ]


def test_a_user_is_impersonated_for_a_verb() -> None:
    constrained, unconstrained = modes(impersonate_user="eve", impersonate_group="dev")
    assert constrained == [
        ("impersonate-on:user-info:list", "", "pods", ""),
        ("impersonate:user-info", "authentication.k8s.io", "users", "eve"),
        ("impersonate:user-info", "authentication.k8s.io", "groups", "dev"),
    ]
    assert unconstrained == [("impersonate", "", "users", "eve"), ("impersonate", "", "groups", "dev")]


def test_a_service_account_has_a_mode_of_its_own() -> None:
    account = {"impersonate_user": "system:serviceaccount:web:runner"}
    assert modes(**account)[0] == [
        ("impersonate-on:serviceaccount:list", "", "pods", ""),
        ("impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts", "runner"),
    ]
    assert len(modes(**account, impersonate_group="dev")) == 1, "groups require the verb impersonate"


def test_a_node_is_impersonated_as_any_node_or_as_the_own_node() -> None:
    agent = User("system:serviceaccount:a:b", (), extra=(("authentication.kubernetes.io/node-name", ("n1",)),))
    own = [
        ("impersonate-on:associated-node:list", "", "pods", ""),
        ("impersonate:associated-node", "authentication.k8s.io", "nodes", "*"),
    ]
    anyone = [
        ("impersonate-on:arbitrary-node:list", "", "pods", ""),
        ("impersonate:arbitrary-node", "authentication.k8s.io", "nodes", "n1"),
    ]
    assert modes(by=agent, impersonate_user="system:node:n1")[:-1] == [own, anyone]
    assert modes(impersonate_user="system:node:n1")[:-1] == [anyone]
    assert len(modes(by=agent, impersonate_user="system:node:n2")) == 2
    assert len(modes(impersonate_user="system:node:n1", impersonate_group="x")) == 1


@pytest.fixture(params=[V1_35, V1_37], ids=str)
async def api(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Asker, KubernetesVersion]]:
    tokens = StaticTokens.of({"bob": User("bob", ("system:authenticated",)), "root": User("root", ("system:masters",))})
    settings = ListenSettings(Address("0.0.0.0", 6443), rbac=True)
    async with asking(access=Access(Credentials(settings, tokens, None)), version=request.param) as api:
        yield api, request.param


async def allow(api: Asker, *rules: dict[str, Any]) -> None:
    """Give bob these permissions."""
    await api.create(f"{RBAC}/clusterroles", role("acting", list(rules)), headers=ROOT)
    subjects = [{"kind": "User", "name": "bob"}]
    await api.create(f"{RBAC}/clusterrolebindings", binding("acting", "ClusterRole/acting", subjects), headers=ROOT)


async def test_a_constrained_user_may_only_list(api: tuple[Asker, KubernetesVersion]) -> None:
    asker, version = api
    on = {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["pods"]}
    whom = {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["users"]}
    await allow(asker, on, {**whom, "resourceNames": ["eve"]})
    eve = {**BOB, "impersonate-user": "eve"}
    listed = (await asker.ask("GET", PODS, headers=eve)).json["message"]
    read = (await asker.ask("GET", f"{PODS}/p", headers=eve)).json["message"]
    if version is V1_35:
        assert listed.startswith('users "eve" is forbidden: User "bob" cannot impersonate resource "users"')
        assert read == listed
    else:
        assert listed.startswith('pods is forbidden: User "eve" cannot list')
        assert read.startswith('pods "p" is forbidden: User "bob" cannot impersonate-on:user-info:get')
        masters = {**eve, "impersonate-group": "system:masters"}
        assert (await asker.ask("GET", PODS, headers=masters)).status == 403
