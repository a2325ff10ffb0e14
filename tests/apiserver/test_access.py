"""Tests of the access rules, and of rejected settings that would admit everyone."""

import argparse
from pathlib import Path

import pytest

from kschedd.access.addresses import Address
from kschedd.access.credentials import Credentials, ListenSettings
from kschedd.access.tokens import StaticTokens
from kschedd.access.users import READ_ONLY, User
from kschedd.apiserver.access import Access, check_allowed
from kschedd.apiserver.codec.status import StatusError
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


def test_a_client_certificate_names_user_and_groups() -> None:
    access = letting_in(StaticTokens(), client_ca=Path("ca.pem"))
    certificate = {"subject": ((("organizationName", "dev"),), (("commonName", "ann"),))}
    user = access.user_of(request(), Peer(1, "10.0.0.1", certificate))
    assert user == User("ann", ("dev", "system:authenticated"))
    with pytest.raises(StatusError):
        access.user_of(request(), Peer(1, "10.0.0.1", {}))


@pytest.mark.parametrize(
    ("verb", "path", "message"),
    [
        pytest.param(
            "list",
            "/api/v1/namespaces/default/pods",
            'pods is forbidden: User "eve" cannot list resource "pods" in API group "" in the namespace "default"',
            id="a-list",
        ),
        pytest.param(
            "patch",
            "/apis/apps/v1/namespaces/x/deployments/d/scale",
            'deployments.apps "d" is forbidden: User "eve" cannot patch resource "deployments/scale" in API group '
            '"apps" in the namespace "x"',
            id="a-subresource",
        ),
        pytest.param(
            "get",
            "/api/v1/nodes/n",
            'nodes "n" is forbidden: User "eve" cannot get resource "nodes" in API group "" at the cluster scope',
            id="the-cluster",
        ),
        pytest.param("get", "/metrics", 'forbidden: User "eve" cannot get path "/metrics"', id="no-resource"),
    ],
)
def test_in_somebody_elses_name_nothing_is_done(verb: str, path: str, message: str) -> None:
    """No roles exist that could permit a request; with the group system:masters every request is permitted."""
    eve = Access().user_of(request(**{"impersonate-user": "eve"}), Peer(1, "127.0.0.1"))
    with pytest.raises(StatusError) as refused:
        check_allowed(eve, verb, path)
    assert str(refused.value) == message
    headers = {"impersonate-user": "eve", "impersonate-group": "system:masters"}
    check_allowed(Access().user_of(request(**headers), Peer(1, "127.0.0.1")), verb, path)


def test_what_there_is_everybody_may_see() -> None:
    eve = Access().user_of(request(**{"impersonate-user": "eve"}), Peer(1, "127.0.0.1"))
    for path in ("/api", "/apis/apps/v1", "/version", "/readyz", "/openapi/v3"):
        check_allowed(eve, "get", path)


READER = User("ann", (READ_ONLY,))


@pytest.mark.parametrize("verb", ["get", "list", "watch"])
@pytest.mark.parametrize("path", ["/api/v1/namespaces/default/pods/p", "/apis/apps/v1/deployments", "/metrics"])
def test_a_read_only_user_reads_everything(verb: str, path: str) -> None:
    check_allowed(READER, verb, path)


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete", "deletecollection"])
def test_a_read_only_user_writes_nothing(verb: str) -> None:
    with pytest.raises(StatusError, match=f'User "ann" cannot {verb} resource "pods"') as refused:
        check_allowed(READER, verb, "/api/v1/namespaces/default/pods/p")
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
