"""Tests of the HTTP client against servers on loopback that count their connections."""

import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import attrs
import pytest
import trio
import trustme

from kschedd.http.client import ConnectionLost, HttpClient
from kschedd.http.endpoint import ConnectFailed, Endpoint
from kschedd.http.protocol import MOST_HEAD, HttpFault, HttpRequest, RequestReader

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Serve = Callable[["Origin", HttpRequest, trio.abc.Stream], Awaitable[None]]


@attrs.define(eq=False)
class Origin:
    """A server that calls `serve` for each request, on connections that stay open."""

    serve: Serve
    tls: ssl.SSLContext | None = None
    connections: int = attrs.field(default=0, init=False)
    requests: list[HttpRequest] = attrs.field(factory=list, init=False)
    port: int = attrs.field(default=0, init=False)

    async def run(self, stream: trio.abc.Stream) -> None:
        self.connections += 1
        reader = RequestReader()
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async with trio.SSLStream(stream, self.tls, server_side=True) if self.tls else stream as channel:
                while data := await channel.receive_some(1 << 16):
                    reader.feed(bytes(data))
                    while (request := reader.next_request()) is not None:
                        self.requests.append(request)
                        await self.serve(self, request, channel)


@asynccontextmanager
async def origin(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[Origin]:
    found = Origin(serve, tls)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, found.run, 0, host="127.0.0.1"))
        found.port = listeners[0].socket.getsockname()[1]
        yield found
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def client_of(port: int, **parts: object) -> AsyncIterator[HttpClient]:
    scheme = "https" if parts.get("tls") else "http"
    client = HttpClient(Endpoint.of(f"{scheme}://127.0.0.1:{port}", **parts), [("Authorization", "Bearer t")])  # type: ignore[arg-type]
    yield client
    await client.aclose()


async def body_of(client: HttpClient, method: str = "GET", target: str = "/a", body: bytes = b"") -> bytes:
    answer = await client.send(method, target, body=body)
    try:
        return b"".join([piece async for piece in answer])
    finally:
        await answer.aclose()


async def say_ok(server: Origin, request: HttpRequest, stream: trio.abc.Stream) -> None:
    await stream.send_all(OK)


def saying(raw: bytes, *, closes: bool = False) -> Serve:
    async def serve(server: Origin, request: HttpRequest, stream: trio.abc.Stream) -> None:
        await stream.send_all(raw)
        if closes:
            await stream.aclose()

    return serve


async def test_one_connection_serves_requests_one_after_the_other() -> None:
    async with origin(say_ok) as server, client_of(server.port) as client:
        for number in range(5):
            assert await body_of(client, "POST", f"/{number}", b"{}") == b"ok"
        assert (server.connections, client.opened) == (1, 1)
    first = server.requests[0]
    assert (first.method, first.target, first.body) == ("POST", b"/0", b"{}")
    assert first.headers["host"] == f"127.0.0.1:{server.port}"
    assert first.headers["authorization"] == "Bearer t"


async def test_there_are_as_many_connections_as_requests_at_the_same_time() -> None:
    all_are_there = trio.Event()

    async def serve(server: Origin, request: HttpRequest, stream: trio.abc.Stream) -> None:
        if len(server.requests) == 8:
            all_are_there.set()
        await all_are_there.wait()
        await stream.send_all(OK)

    async with origin(serve) as server, client_of(server.port) as client:
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for _ in range(8):
                    nursery.start_soon(body_of, client)
        assert len(server.requests) == 16
        assert server.connections == 8


async def test_an_idle_connection_that_the_server_closed_is_not_used_again() -> None:
    closed = trio.Event()

    async def serve(server: Origin, request: HttpRequest, stream: trio.abc.Stream) -> None:
        await stream.send_all(OK)
        if len(server.requests) == 1:
            await stream.aclose()
            closed.set()

    async with origin(serve) as server, client_of(server.port) as client:
        assert await body_of(client, "POST") == b"ok"
        await closed.wait()
        assert await body_of(client, "POST") == b"ok"
        assert server.connections == 2


async def test_a_response_that_is_not_read_to_the_end_closes_its_connection() -> None:
    async with origin(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")) as server:
        async with client_of(server.port) as client:
            for _ in range(2):
                answer = await client.send("GET", "/")
                assert await anext(answer) == b"ok"
                await answer.aclose()
            assert server.connections == 2


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        pytest.param(b"Content-Length: 2\r\n\r\nok", b"ok", id="length"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", b"ok", id="chunks"),
        pytest.param(b"\r\nok", b"ok", id="until-the-connection-ends"),
        pytest.param(b"Content-Length: 0\r\n\r\n", b"", id="empty"),
    ],
)
async def test_the_end_of_a_body(raw: bytes, body: bytes) -> None:
    async with origin(saying(b"HTTP/1.1 200 OK\r\n" + raw, closes=True)) as server, client_of(server.port) as client:
        assert await body_of(client) == body


async def test_gzip_is_decompressed_in_bounded_pieces() -> None:
    whole = b"a" * (5 << 20)
    packed = gzip.compress(whole)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    async with origin(saying(head + packed)) as server, client_of(server.port) as client:
        answer = await client.send("GET", "/")
        pieces = [piece async for piece in answer]
        await answer.aclose()
        assert b"".join(pieces) == whole
        assert max(map(len, pieces)) == 1 << 20
        assert await body_of(client) == whole
        assert server.connections == 1


@pytest.mark.parametrize(
    ("raw", "fault", "why"),
    [
        pytest.param(b"", ConnectionLost, "closed before the response", id="no-response"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", ConnectionLost, "before the end", id="half-of-a-response"
        ),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", HttpFault, "not an HTTP/1.1 response", id="another-protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\na: " + b"b" * (MOST_HEAD + 9), HttpFault, "the head exceeds", id="head"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
            HttpFault,
            "gzip",
            id="no-gzip",
        ),
        pytest.param(OK + OK, HttpFault, "a response without a request", id="a-second-response"),
    ],
)
async def test_what_is_no_response(raw: bytes, fault: type[Exception], why: str) -> None:
    async with origin(saying(raw, closes=True)) as server, client_of(server.port) as client:
        with pytest.raises(fault) as raised:
            await body_of(client)
    assert why in getattr(raised.value, "why", "")


async def test_a_cancelled_request_closes_its_connection() -> None:
    async def serve(server: Origin, request: HttpRequest, stream: trio.abc.Stream) -> None:
        if len(server.requests) > 1:
            await stream.send_all(OK)

    async with origin(serve) as server, client_of(server.port) as client:
        with trio.move_on_after(0.05):
            await body_of(client)
        assert await body_of(client) == b"ok"
        assert server.connections == 2


async def test_a_refused_connection_is_told_apart() -> None:
    async with client_of(1) as client:
        with pytest.raises(ConnectFailed, match=r"connect to 127\.0\.0\.1:1: connection refused") as raised:
            await body_of(client)
    assert raised.value.is_refused


def certified(*names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a server with a certificate for these names, and of a client that trusts its issuer."""
    authority = trustme.CA()
    here, there = ssl.create_default_context(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(there)
    authority.configure_trust(here)
    return there, here


async def test_a_certificate_is_verified_by_the_name_of_the_kubeconfig() -> None:
    there, here = certified("kubernetes.default")
    async with origin(say_ok, there) as server:
        async with client_of(server.port, tls=here, tls_name="kubernetes.default") as client:
            assert await body_of(client) == b"ok"
            assert await body_of(client) == b"ok"
            assert server.connections == 1
        async with client_of(server.port, tls=here) as client:
            with pytest.raises(ConnectFailed, match="certificate verify failed"):
                await body_of(client)


async def echo(server: Origin, request: HttpRequest, stream: trio.abc.Stream) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(request.body) + request.body)


@pytest.mark.parametrize("encrypted", [False, True])
async def test_bodies_that_are_larger_than_all_buffers(encrypted: bool) -> None:
    there, here = certified("127.0.0.1") if encrypted else (None, None)
    body = bytes(range(256)) * 8_000
    async with origin(echo, there) as server, client_of(server.port, tls=here) as client:
        for _ in range(2):
            assert await body_of(client, "POST", "/", body) == body
        assert server.connections == 1


async def test_records_that_have_arrived_are_read_together() -> None:
    """A watch that reads each event separately falls behind, and its events cause an attempt each."""
    there, here = certified("127.0.0.1")
    begin, sent = trio.Event(), trio.Event()

    async def serve(server: Origin, request: HttpRequest, stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        await begin.wait()
        for _ in range(100):
            await stream.send_all(b"0123456789")
        sent.set()

    async with origin(serve, there) as server, client_of(server.port, tls=here) as client:
        answer = await client.send("GET", "/")
        begin.set()
        await sent.wait()
        assert await anext(answer) == b"0123456789" * 100
        await answer.aclose()


async def tunnel(server: Origin, request: HttpRequest, stream: trio.abc.Stream) -> None:
    """Serve CONNECT as a proxy does."""
    if request.headers.get("proxy-authorization") != "Basic dTpwQA==":
        await stream.send_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        return
    host, _, port = request.target.decode().rpartition(":")
    onward = await trio.open_tcp_stream(host, int(port))
    await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")

    async def copy(source: trio.abc.Stream, target: trio.abc.Stream) -> None:
        while data := await source.receive_some(1 << 16):
            await target.send_all(data)

    async with onward, trio.open_nursery() as nursery:
        nursery.start_soon(copy, onward, stream)
        await copy(stream, onward)
        nursery.cancel_scope.cancel()


async def test_a_tls_server_is_reached_through_a_proxy_that_sees_no_credentials() -> None:
    there, here = certified("127.0.0.1")
    async with origin(say_ok, there) as server, origin(tunnel) as proxy:
        async with client_of(server.port, tls=here, proxy=f"http://u:p%40@127.0.0.1:{proxy.port}") as client:
            assert await body_of(client) == b"ok"
            assert await body_of(client) == b"ok"
        assert [(seen.method, seen.headers.get("authorization")) for seen in proxy.requests] == [("CONNECT", None)]
        async with client_of(server.port, tls=here, proxy=f"http://127.0.0.1:{proxy.port}") as client:
            with pytest.raises(ConnectFailed, match=r"the proxy 127.0.0.1 rejected CONNECT 127\.0\.0\.1:\d+: 407"):
                await body_of(client)


async def test_a_tls_server_is_reached_through_a_proxy_with_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    there, here = certified("127.0.0.1")
    proxied, trusting = certified("127.0.0.1")
    monkeypatch.setattr("kschedd.http.endpoint.ssl.create_default_context", lambda: trusting)
    async with origin(echo, there) as server, origin(tunnel, proxied) as proxy:
        async with client_of(server.port, tls=here, proxy=f"https://u:p%40@127.0.0.1:{proxy.port}") as client:
            assert await body_of(client, "POST", "/", b"a") == b"a"
            assert await body_of(client, "POST", "/", b"b") == b"b"
        assert server.connections == 1


async def test_a_proxy_receives_requests_to_a_server_without_tls_itself() -> None:
    async with origin(say_ok) as proxy, client_of(1, proxy=f"http://127.0.0.1:{proxy.port}") as client:
        assert await body_of(client) == b"ok"
    assert [seen.target for seen in proxy.requests] == [b"http://127.0.0.1:1/a"]


@pytest.mark.parametrize("url", ["ftp://there", "there:6443", "https://", "http://a:b"])
def test_an_address_that_cannot_be_used(url: str) -> None:
    with pytest.raises(ConnectFailed, match="the URL of the server"):
        Endpoint.of(url)
