"""Calls of extenders over real HTTP and HTTPS, as the daemon and other callers make them.

The tests check the answers and the error messages.
"""

import base64
import gc
import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trustme

from kschedd.actors.scheduler.extenders import ExtenderClients
from kschedd.config.loading.load import config_from_raw
from kschedd.config.model import Extender
from kschedd.extenders import http
from kschedd.extenders.calls import ExtenderCall, ExtenderFailure
from kschedd.extenders.http import ExtenderTLSError, tls_context
from kschedd.extenders.messages import binding_args, binding_error
from tests.extenders.servers import answering, dripping, nobody_there, serving

Ask = Callable[[ExtenderCall], Any]


def configured(url: str, **settings: Any) -> Extender:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": url, "bindVerb": "bind", **settings}],
    }
    [extender] = config_from_raw(raw).extenders
    return extender


def given_up(ask: Ask, url: str, words: str) -> str:
    """Call an extender that hangs, with growing timeouts, until this is the last message about it.

    On a slow machine a short timeout ends before the extender's first bytes have come.
    """
    for doublings in range(10):
        answer = ask(binding(url, httpTimeout=f"{100 << doublings}ms"))
        assert isinstance(answer, ExtenderFailure)
        if str(answer).endswith(words):
            break
    return str(answer)


def binding(url: str, pod_name: str = "web", **settings: Any) -> ExtenderCall:
    def write() -> list[bytes]:
        body = binding_args("default", pod_name, "uid", "n1")
        return [body[first : first + 1000] for first in range(0, len(body), 1000)]

    return ExtenderCall(configured(url, **settings), "bind", "default/web", write, binding_error, http.send)


def _on_the_loop(call: ExtenderCall) -> Any:
    async def main() -> Any:
        clients = ExtenderClients()
        try:
            return await clients.answer(call)
        finally:
            await clients.close()

    return trio.run(main)


@pytest.fixture(params=["on-the-loop", "at-once"])
def ask(request: pytest.FixtureRequest) -> Ask:
    return _on_the_loop if request.param == "on-the-loop" else lambda call: call()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


def test_a_call_posts_json_and_reads_json(ask: Ask) -> None:
    with serving({"bind": lambda body: {"Error": f"no {body['Node']} for {body['PodName']}"}}) as extender:
        assert ask(binding(extender.url + "/")) == "no n1 for web"
        args = {"PodName": "web", "PodNamespace": "default", "PodUID": "uid", "Node": "n1"}
        assert extender.requests == [("bind", args)]


FAULTS = {
    # what the server sends, and in which words the call fails ("{url}" is the extender's)
    "not-found": (
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "failed bind with extender at URL {url}/bind, code 404",
    ),
    "no-json": (OK % 4 + b"oops", "invalid character 'o' looking for beginning of value"),
    "empty": (OK % 0, "EOF"),
    "cut-json": (OK % 10 + b'{"Error": ', "unexpected EOF"),
    "wrong-type": (
        OK % 12 + b'{"Error": 7}',
        "json: cannot unmarshal number into Go struct field ExtenderBindingResult.Error of type string",
    ),
    "a-list": (OK % 2 + b"[]", "json: cannot unmarshal array into Go value of type v1.ExtenderBindingResult"),
    "closes-at-once": (b"", 'Post "{url}/bind": EOF'),
    "closes-half-way": (OK % 100 + b'{"Error"', "unexpected EOF"),
    "no-http": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", 'Post "{url}/bind": illegal'),
    "elsewhere": (
        b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
        'Post "{url}/bind": ',
    ),
    "to-no-host": (
        b"HTTP/1.1 302 Found\r\nLocation: http://" + b"x" * 300 + b"/\r\nContent-Length: 0\r\n\r\n",
        "Post \"{url}/bind\": encoding with 'idna' codec failed",
    ),
    "in-circles": (
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /bind\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        'Post "{url}/bind": stopped after 10 redirects',
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_answer_is_a_failure_that_says_what_is_wrong(fault: str, ask: Ask) -> None:
    raw, words = FAULTS[fault]
    with answering(raw) as url:
        answer = ask(binding(url))
        assert isinstance(answer, ExtenderFailure)
        assert str(answer).startswith(words.replace("{url}", url)), answer


def test_an_extender_that_is_down_refuses_the_connection(ask: Ask) -> None:
    with nobody_there() as url:
        answer = ask(binding(url))
        assert isinstance(answer, ExtenderFailure)
        host = url.removeprefix("http://")
        assert str(answer) == f'Post "{url}/bind": dial tcp {host}: connect: connection refused'


def test_an_extender_that_goes_while_a_body_is_sent_leaves_nothing_behind(ask: Ask) -> None:
    with answering(b"", reads=False) as url:
        answer = ask(binding(url, pod_name="a" * (32 << 20)))
        assert isinstance(answer, ExtenderFailure)
        assert str(answer).startswith(f'Post "{url}/bind": ')
    gc.collect()  # a generator that was not closed would warn here


def test_a_silent_extender_is_given_up_after_its_timeout(ask: Ask) -> None:
    with answering(b"", keeps_open=True) as url:
        late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        assert given_up(ask, url, late) == f'Post "{url}/bind": {late}'


def test_an_answer_that_stops_is_given_up_after_the_timeout(ask: Ask) -> None:
    with answering(OK % 100 + b"{", keeps_open=True) as url:
        late = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
        assert given_up(ask, url, late) == late


@pytest.mark.parametrize(
    ("head", "words"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nX: ", "while awaiting headers)", id="headers"),
        pytest.param(OK % 10_000, "while reading body)", id="body"),
    ],
)
def test_an_answer_byte_by_byte_is_given_up_after_the_timeout(head: bytes, words: str, ask: Ask) -> None:
    with dripping(b" " * 10_000, head) as url:
        assert given_up(ask, url, words).endswith(words)


def test_an_answer_without_end_is_not_read_to_its_end(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_ANSWER_BYTES", 1 << 20)
    with answering(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * ((1 << 20) + 1), keeps_open=True) as url:
        answer = ask(binding(url))
        assert isinstance(answer, ExtenderFailure)
        assert str(answer) == f'Post "{url}/bind": the response exceeds 1 MiB'


def test_redirects_are_followed(ask: Ask) -> None:
    with serving({"bind": lambda body: {"Error": body["PodName"]}}) as extender:
        to = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {extender.url}/bind\r\nContent-Length: 0\r\n\r\n"
        with answering(to.encode()) as url:
            assert ask(binding(url)) == "web"


def test_cookies_are_not_kept(ask: Ask) -> None:
    with serving({"bind": lambda body: {"Error": body["PodName"]}}) as extender:
        head = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {extender.url}/bind\r\nSet-Cookie: a=b; Path=/\r\n"
        with answering(f"{head}Content-Length: 0\r\n\r\n".encode()) as url:
            assert ask(binding(url)) == "web"
        assert extender.cookies == [None]


def test_a_long_body_is_sent_whole_where_a_redirect_leads(ask: Ask) -> None:
    long = "w" * (2 * http.SMALL_BYTES)
    with serving({"bind": lambda body: {"Error": body["PodName"]}}) as extender:
        to = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {extender.url}/bind\r\nContent-Length: 0\r\n\r\n"
        with answering(to.encode()) as url:
            assert ask(binding(url, long)) == long


# -- TLS --------------------------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Secured:
    """A CA, an extender whose certificate is from it and who wants one of its clients, and such a client's."""

    authority: trustme.CA
    client: trustme.LeafCert
    url: str
    certificates: list[Any]

    def settings(self, **tls: Any) -> dict[str, Any]:
        ca = self.authority.cert_pem.bytes()
        whole = {"caData": encoded(ca), "certData": encoded(self.certificate), "keyData": encoded(self.key), **tls}
        return {"enableHTTPS": True, "tlsConfig": {name: value for name, value in whole.items() if value}}

    @property
    def certificate(self) -> bytes:
        return b"".join(blob.bytes() for blob in self.client.cert_chain_pems)

    @property
    def key(self) -> bytes:
        return self.client.private_key_pem.bytes()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def secured(authority: trustme.CA) -> Iterator[Secured]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "extender.example").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    client = authority.issue_cert("scheduler@example.com", common_name="scheduler")
    with serving({"bind": lambda body: {}}, context) as extender:
        yield Secured(authority, client, extender.url, extender.certificates)


def test_certificates_are_checked_both_ways(secured: Secured, ask: Ask) -> None:
    assert ask(binding(secured.url, **secured.settings())) == ""
    [shown] = secured.certificates
    assert (("commonName", "scheduler"),) in shown["subject"]


def test_certificates_may_be_in_files(secured: Secured, ask: Ask, tmp_path: Path) -> None:
    files = {"caFile": secured.authority.cert_pem.bytes(), "certFile": secured.certificate, "keyFile": secured.key}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    tls = {name: str(tmp_path / name) for name in files}
    assert ask(binding(secured.url, **secured.settings(caData="", certData="", keyData="", **tls))) == ""
    assert secured.certificates[0]["subject"]


def test_a_certificate_of_another_authority_is_refused(secured: Secured, ask: Ask) -> None:
    answer = ask(binding(secured.url, **secured.settings(caData=encoded(trustme.CA().cert_pem.bytes()))))
    assert isinstance(answer, ExtenderFailure)
    assert str(answer).startswith(f'Post "{secured.url}/bind": tls: failed to verify certificate: x509: ')


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("extender.example", "", id="that-it-has"),
        pytest.param(
            "other.example", "Hostname mismatch, certificate is not valid for 'other.example'.", id="that-it-has-not"
        ),
    ],
)
def test_the_name_it_is_checked_for_can_be_given(name: str, why: str, secured: Secured, ask: Ask) -> None:
    answer = str(ask(binding(secured.url, **secured.settings(serverName=name))))
    assert answer == (f'Post "{secured.url}/bind": tls: failed to verify certificate: x509: {why}' if why else "")


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"enableHTTPS": True}, id="https-without-a-ca"),
        pytest.param({"tlsConfig": {"insecure": True}}, id="insecure"),
    ],
)
def test_nobody_is_checked_where_the_configuration_says_so(
    settings: dict[str, Any], secured: Secured, ask: Ask
) -> None:
    assert ask(binding(secured.url, **settings)) == ""
    assert secured.certificates == [{}] or not secured.certificates[0]


def test_without_any_of_that_the_systems_authorities_decide(secured: Secured, ask: Ask) -> None:
    answer = ask(binding(secured.url))
    assert isinstance(answer, ExtenderFailure)
    assert "tls: failed to verify certificate" in str(answer)


@pytest.mark.parametrize(
    ("tls", "answer"),
    [
        pytest.param({"caFile": "/no/such/ca"}, "caFile /no/such/ca: No such file or directory", id="authorities"),
        pytest.param(
            {"insecure": True, "certFile": "/no/such/crt", "keyFile": "/no/such/key"},
            "certFile /no/such/crt, keyFile /no/such/key: No such file or directory",
            id="certificate-and-key",
        ),
    ],
)
def test_a_file_that_is_not_there_is_said(ask: Ask, tls: dict[str, Any], answer: str) -> None:
    settings = {"enableHTTPS": True, "tlsConfig": tls}
    failure = ask(binding("https://127.0.0.1:1", **settings))
    assert isinstance(failure, ExtenderFailure)
    assert str(failure) == f"extender https://127.0.0.1:1: tlsConfig: {answer}"
    with pytest.raises(ExtenderTLSError):
        tls_context(configured("https://127.0.0.1:1", **settings))


def test_json_is_as_upstream_writes_it() -> None:
    assert json.loads(binding_args("a", "b", "c", "d")) == {
        "PodName": "b",
        "PodNamespace": "a",
        "PodUID": "c",
        "Node": "d",
    }
