"""Who may come in, and which settings are refused because anybody could."""

import argparse
from pathlib import Path

import pytest

from kschedd.apiserver.access import (
    Access,
    AccessError,
    Address,
    HttpSettings,
    check_allowed,
    read_address,
    read_tokens,
)
from kschedd.apiserver.reviews import User
from kschedd.apiserver.status import StatusError
from kschedd.commands.run import add_parser
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import Peer
from kschedd.store.service_addresses import SERVICE_RANGE


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8001", Address("127.0.0.1", 8001)),
        ("8001", Address("127.0.0.1", 8001)),
        (":0", Address("127.0.0.1", 0)),
        ("[::1]:8001", Address("::1", 8001)),
        ("0.0.0.0:6443", Address("0.0.0.0", 6443)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize("text", ["", "localhost", "localhost:http", "a:70000", "1.2.3.4:-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(AccessError, match="HOST:PORT"):
        read_address(text)


ANYWHERE = Address("0.0.0.0", 6443)
HERE = Address("127.0.0.1", 8001)
FILE = Path("x.pem")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        pytest.param(HttpSettings(ANYWHERE), "without TLS", id="plain-beyond-loopback"),
        pytest.param(HttpSettings(ANYWHERE, FILE, FILE), "anybody could do anything", id="nobody-is-asked-who-it-is"),
        pytest.param(HttpSettings(HERE, FILE), "belong together", id="a-certificate-without-its-key"),
        pytest.param(HttpSettings(HERE, client_ca=FILE), "needs TLS", id="client-certificates-without-tls"),
        pytest.param(HttpSettings(HERE, token_file=Path("/nowhere")), "cannot be read", id="tokens-that-are-not-there"),
    ],
)
def test_settings_that_are_refused(settings: HttpSettings, why: str) -> None:
    with pytest.raises(AccessError, match=why):
        settings.access()


def test_loopback_needs_nothing() -> None:
    assert HttpSettings(HERE).access().local


def test_a_file_of_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text('# who\nabc,ann,1,"dev,ops"\nxyz,bob,2\n')
    assert read_tokens(file) == {
        "abc": User("ann", ("dev", "ops", "system:authenticated")),
        "xyz": User("bob", ("system:authenticated",)),
    }


@pytest.mark.parametrize("text", ["", "abc\n", ",ann,1\n"])
def test_a_file_without_tokens_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text(text)
    with pytest.raises(AccessError):
        read_tokens(file)


def request(**headers: str) -> HttpRequest:
    return HttpRequest("GET", b"/", headers, b"", True)


def test_a_token_opens_and_a_wrong_one_does_not() -> None:
    access = Access({"abc": User("ann")}, local=False)
    assert access.user_of(request(authorization="Bearer abc"), Peer(1, "10.0.0.1")).name == "ann"
    for headers in ({}, {"authorization": "Bearer abd"}, {"authorization": "Basic abc"}):
        with pytest.raises(StatusError, match="Unauthorized"):
            access.user_of(request(**headers), Peer(1, "10.0.0.1"))


def test_a_client_certificate_names_user_and_groups() -> None:
    access = Access(certificates=True, local=False)
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
    """There are no roles, so nothing allows it; only as one of system:masters everything is."""
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


def test_the_command_line_gives_services_the_addresses_that_the_store_does() -> None:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    assert parser.parse_args(["run"]).service_cluster_ip_range == SERVICE_RANGE
