"""Tests of the access rules, and of rejected settings that would admit everyone."""

import argparse
from pathlib import Path

import pytest

from kschedd.access.addresses import Address
from kschedd.access.credentials import Credentials, ListenSettings
from kschedd.access.requests import AccessRequest
from kschedd.access.tokens import StaticTokens
from kschedd.access.users import READ_ONLY, User
from kschedd.apiserver.access import Access, check_allowed, forbidden
from kschedd.apiserver.codec.status import StatusError
from kschedd.apiserver.requests import access_request, split_target
from kschedd.commands.run import add_parser
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import Peer
from kschedd.store.creating.service_addresses import SERVICE_RANGE


def request(**headers: str) -> HttpRequest:
    return HttpRequest("GET", b"/", headers, b"", True)


def letting_in(tokens: StaticTokens, client_ca: Path | None = None) -> Access:
    """Return the access rule for non-loopback addresses."""
    return Access(Credentials(ListenSettings(Address("0.0.0.0", 6443), client_ca=client_ca), tokens, None))


def test_a_token_opens_and_a_wrong_one_does_not() -> None:
    access = letting_in(StaticTokens.of({"abc": User("ann")}))
    assert access.user_of(request(authorization="Bearer abc"), Peer(1, "10.0.0.1")).name == "ann"
    for headers in ({}, {"authorization": "Bearer abd"}, {"authorization": "Basic abc"}):
        with pytest.raises(StatusError, match="Unauthorized"):
            access.user_of(request(**headers), Peer(1, "10.0.0.1"))


@pytest.mark.parametrize(
    ("rbac", "token", "accepted"),
    [
        pytest.param(False, "garbage", True, id="a-loopback-address-is-open"),
        pytest.param(False, "a.b.c", False, id="but-not-to-an-invalid-web-token"),
        pytest.param(True, "garbage", False, id="with-rbac-a-token-must-be-valid"),
    ],
)
def test_an_invalid_token_on_a_loopback_address(rbac: bool, token: str, accepted: bool) -> None:
    access = Access(Credentials(ListenSettings(Address("127.0.0.1", 0), rbac=rbac), StaticTokens(), None))
    asked = request(authorization=f"Bearer {token}")
    if accepted:
        assert access.user_of(asked, Peer(1, "127.0.0.1")).name == "system:admin"
        return
    with pytest.raises(StatusError, match="Unauthorized") as refused:
        access.user_of(asked, Peer(1, "127.0.0.1"))
    assert refused.value.code == 401


def test_a_client_certificate_names_user_and_groups() -> None:
    access = letting_in(StaticTokens(), client_ca=Path("ca.pem"))
    certificate = {"subject": ((("organizationName", "dev"),), (("commonName", "ann"),))}
    user = access.user_of(request(), Peer(1, "10.0.0.1", certificate))
    assert user == User("ann", ("dev", "system:authenticated"))
    with pytest.raises(StatusError):
        access.user_of(request(), Peer(1, "10.0.0.1", {}))


def test_rbac_judges_an_impersonated_user_unless_it_is_a_master() -> None:
    headers = {
        "impersonate-user": "system:serviceaccount:web:runner",
        "impersonate-uid": "7",
        "impersonate-extra-example.com%2fteam": "blue",
    }
    runner = Access().user_of(request(**headers), Peer(1, "127.0.0.1"))
    groups = ("system:serviceaccounts", "system:serviceaccounts:web", "system:authenticated")
    assert (runner.groups, runner.uid, runner.judged) == (groups, "7", True)
    assert runner.extra == (("example.com/team", ("blue",)),)
    headers = {"impersonate-user": "eve", "impersonate-group": "system:masters"}
    assert not Access().user_of(request(**headers), Peer(1, "127.0.0.1")).judged


@pytest.mark.parametrize(
    ("name", "groups", "expected"),
    [
        pytest.param("eve", "", ("system:authenticated",), id="a-user-is-authenticated"),
        pytest.param("eve", "dev, ops", ("dev", "ops", "system:authenticated"), id="with-groups-too"),
        pytest.param("eve", "system:unauthenticated", ("system:unauthenticated",), id="unless-the-request-says-not"),
        pytest.param("system:anonymous", "", ("system:unauthenticated",), id="the-anonymous-user-is-not"),
        pytest.param("system:serviceaccount:a:b", "dev", ("dev", "system:authenticated"), id="given-groups-replace"),
    ],
)
def test_groups_of_an_impersonated_user(name: str, groups: str, expected: tuple[str, ...]) -> None:
    headers = {"impersonate-user": name, **({"impersonate-group": groups} if groups else {})}
    assert Access().user_of(request(**headers), Peer(1, "127.0.0.1")).groups == expected


def test_groups_without_a_user_are_rejected() -> None:
    with pytest.raises(StatusError, match="without impersonating a user name") as refused:
        Access().user_of(request(**{"impersonate-group": "dev"}), Peer(1, "127.0.0.1"))
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        pytest.param("GET", "/api/v1/pods", ("list", "", "pods", "", "", "", ""), id="a-list"),
        pytest.param("GET", "/api/v1/pods?watch=1", ("watch", "", "pods", "", "", "", ""), id="a-watch"),
        pytest.param("HEAD", "/api/v1/nodes/n", ("get", "", "nodes", "", "", "n", ""), id="an-object"),
        pytest.param(
            "PATCH",
            "/apis/apps/v1/namespaces/x/deployments/d/scale",
            ("patch", "apps", "deployments", "scale", "x", "d", ""),
            id="a-subresource",
        ),
        pytest.param("GET", "/api/v1/namespaces/x", ("get", "", "namespaces", "", "x", "x", ""), id="a-namespace"),
        pytest.param(
            "PUT",
            "/api/v1/namespaces/x/finalize",
            ("update", "", "namespaces", "finalize", "x", "x", ""),
            id="a-subresource-of-a-namespace",
        ),
        pytest.param(
            "DELETE", "/api/v1/namespaces/x/pods", ("deletecollection", "", "pods", "", "x", "", ""), id="a-collection"
        ),
        pytest.param(
            "GET",
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dn,metadata.name%3Dp",
            ("list", "", "pods", "", "", "p", ""),
            id="a-list-of-one-object",
        ),
        pytest.param("GET", "/api/v1", ("get", "", "", "", "", "", "/api/v1"), id="discovery"),
        pytest.param("POST", "/metrics", ("post", "", "", "", "", "", "/metrics"), id="a-path"),
        pytest.param("GET", "/apis/apps/v1", ("get", "", "", "", "", "", "/apis/apps/v1"), id="a-group"),
    ],
)
def test_what_a_request_asks_for(method: str, target: str, expected: tuple[str, ...]) -> None:
    user = User("ann")
    found = access_request(method, *split_target(target.encode()), user)
    assert found == AccessRequest(user, *expected)


def test_a_refusal_names_user_verb_resource_and_place() -> None:
    user = User("<eve>")
    refused = forbidden(AccessRequest(user, "patch", "apps", "deployments", "scale", "x", "d"), "RBAC: no role")
    assert refused.message == (
        'deployments.apps "d" is forbidden: User "&lt;eve&gt;" cannot patch resource "deployments/scale" in API group '
        '"apps" in the namespace "x": RBAC: no role'
    )
    assert refused.details == {"name": "d", "group": "apps", "kind": "deployments"}
    assert forbidden(AccessRequest(user, "get", resource="nodes")).message.endswith("at the cluster scope")
    assert forbidden(AccessRequest(user, "get", path="/x")).message == (
        'forbidden: User "&lt;eve&gt;" cannot get path "/x"'
    )


READER = User("ann", (READ_ONLY,))


@pytest.mark.parametrize("verb", ["get", "list", "watch"])
@pytest.mark.parametrize("resource", ["pods", "deployments"])
def test_a_read_only_user_reads_everything(verb: str, resource: str) -> None:
    check_allowed(AccessRequest(READER, verb, resource=resource))
    check_allowed(AccessRequest(READER, "get", path="/metrics"))
    check_allowed(AccessRequest(READER, "create", "authorization.k8s.io", "selfsubjectaccessreviews"))


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete", "deletecollection"])
def test_a_read_only_user_writes_nothing(verb: str) -> None:
    with pytest.raises(StatusError, match=f'User "ann" cannot {verb} resource "pods"') as refused:
        check_allowed(AccessRequest(READER, verb, resource="pods", namespace="default", name="p"))
    assert refused.value.code == 403


def test_a_read_only_user_cannot_take_the_name_of_one_who_writes() -> None:
    access = letting_in(StaticTokens.of({"abc": READER}))
    headers = {"authorization": "Bearer abc", "impersonate-user": "root", "impersonate-group": "system:masters"}
    with pytest.raises(StatusError, match='User "ann" cannot impersonate') as refused:
        access.user_of(request(**headers), Peer(1, "10.0.0.1"))
    assert refused.value.code == 403


def test_the_command_line_gives_services_the_addresses_that_the_store_does() -> None:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    assert parser.parse_args(["run"]).service_cluster_ip_range == SERVICE_RANGE


@pytest.mark.parametrize(
    ("ranges", "why"),
    [("10.0.0.0/16,10.1.0.0/16", "more than one range of IPv4"), ("10.0.0.0/16,fd00::/127", "too few addresses")],
)
def test_the_command_line_rejects_invalid_ranges(ranges: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    with pytest.raises(SystemExit):
        parser.parse_args(["run", "--service-cluster-ip-range", ranges])
    assert why in capsys.readouterr().err
