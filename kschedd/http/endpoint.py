"""Endpoint: the address of an HTTP server, with a method that opens connections, if necessary through a proxy.

Connections to a TLS server are tunneled through a proxy with CONNECT. Requests to a server without TLS are sent to the
proxy with the whole URL.

Raises: ConnectFailed if no connection is opened; no part of a request was sent.
"""

import base64
import socket
import ssl
from collections.abc import Iterator
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import attrs
import trio

from kschedd.errors import KscheddError
from kschedd.http.direct_stream import DirectStream
from kschedd.http.protocol import HttpFault, ResponseHead, ResponseReader, encode_fields, encode_request
from kschedd.http.proxies import port_of

_READ: Final = 64 << 10
_SCHEMES: Final = ("http", "https")


@attrs.define(eq=False)
class ConnectFailed(KscheddError):
    """No connection could be opened; `is_refused` is true if nothing listens at the address."""

    why: str
    is_refused: bool = False

    def __str__(self) -> str:
        return self.why


@attrs.frozen(eq=False)
class Endpoint:
    """`tls_name` is the name in the server's certificate if it differs from the host of the URL."""

    url: SplitResult
    tls: ssl.SSLContext | None = None
    tls_name: str | None = None
    proxy: SplitResult | None = None

    @classmethod
    def of(
        cls, url: str, tls: ssl.SSLContext | None = None, tls_name: str | None = None, proxy: str = ""
    ) -> "Endpoint":
        """Parse the URLs. Raises ConnectFailed if the URL of the server or of the proxy is invalid."""
        return cls(_parsed(url, "the server"), tls, tls_name, _parsed(proxy, "the proxy") if proxy else None)

    @property
    def base(self) -> str:
        """The path or URL with which the target of each request begins."""
        path = self.url.path.rstrip("/")
        return path if self.proxy is None or self.tls is not None else f"{self.url.scheme}://{self.url.netloc}{path}"

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The header fields that each request to this endpoint must contain."""
        found = [("Host", self.url.netloc.rpartition("@")[2])]
        if self.proxy is not None and self.tls is None:
            found += _proxy_credentials(self.proxy)
        return found

    async def connect(self) -> trio.abc.Stream:
        """Open a connection; the server's certificate is verified if the connection uses TLS."""
        stream: trio.abc.Stream = await _tcp(self.proxy or self.url)
        try:
            if self.proxy is not None and self.proxy.scheme == "https":
                stream = await _encrypted(stream, ssl.create_default_context(), self.proxy.hostname or "")
            if self.proxy is not None and self.tls is not None:
                await _tunnel(stream, self.url, self.proxy)
            if self.tls is not None:
                stream = await _encrypted(stream, self.tls, self.tls_name or self.url.hostname or "")
            return DirectStream(_taken(stream)) if isinstance(stream, trio.SocketStream) else stream
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise


def _parsed(url: str, whose: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port_of(parts)
    except ValueError as fault:
        raise ConnectFailed(f'the URL of {whose} is not valid: "{url}": {fault}') from None
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ConnectFailed(f'the URL of {whose} must begin with http:// or https://: "{url}"')
    return parts


async def _tcp(url: SplitResult) -> trio.SocketStream:
    host, port = url.hostname or "", port_of(url)
    try:
        return await trio.open_tcp_stream(host, port)
    except OSError as fault:
        causes = list(_causes(fault))
        refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
        why = "connection refused" if refused else causes[0].strerror or str(causes[0])
        raise ConnectFailed(f"connect to {host}:{port}: {why}", refused) from None


def _causes(fault: OSError) -> Iterator[OSError]:
    """Yield the separate errors that trio joins into one error if a host has several addresses."""
    cause = fault.__cause__
    if isinstance(cause, BaseExceptionGroup):
        yield from (each for each in cause.exceptions if isinstance(each, OSError))
    else:
        yield cause if isinstance(cause, OSError) else fault


async def _encrypted(stream: trio.abc.Stream, tls: ssl.SSLContext, name: str) -> trio.abc.Stream:
    try:
        if isinstance(stream, trio.SocketStream):
            return await DirectStream.encrypted(_taken(stream), tls, name)
        encrypted = trio.SSLStream(stream, tls, server_hostname=name, https_compatible=True)
        await encrypted.do_handshake()
    except (trio.BrokenResourceError, OSError) as fault:  # ssl.SSLError is an OSError
        raise ConnectFailed(f"TLS with {name}: {fault.__cause__ or fault or 'the connection was closed'}") from None
    return encrypted


def _taken(stream: trio.SocketStream) -> socket.socket:
    """Return the socket of the stream; the stream can no longer be used."""
    return socket.socket(fileno=stream.socket.detach())


async def _tunnel(stream: trio.abc.Stream, url: SplitResult, proxy: SplitResult) -> None:
    """Request a tunnel to the server from the proxy."""
    host = url.hostname or ""
    target = f"{f'[{host}]' if ':' in host else host}:{port_of(url)}"
    reader = ResponseReader()
    try:
        await stream.send_all(
            encode_request("CONNECT", target, encode_fields([("Host", target), *_proxy_credentials(proxy)]))
        )
        while True:
            data = await stream.receive_some(_READ)
            if not data:
                raise ConnectFailed(f"the proxy {proxy.hostname} closed the connection")
            for event in reader.feed(bytes(data)):
                if isinstance(event, ResponseHead):
                    if event.status // 100 != 2:
                        raise ConnectFailed(f"the proxy {proxy.hostname} rejected CONNECT {target}: {event.status}")
                    return
    except (trio.BrokenResourceError, HttpFault) as fault:
        why = fault.why if isinstance(fault, HttpFault) else "the connection was closed"
        raise ConnectFailed(f"the proxy {proxy.hostname}: {why}") from None
    finally:
        reader.close()


def _proxy_credentials(proxy: SplitResult) -> list[tuple[str, str]]:
    if proxy.username is None:
        return []
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [("Proxy-Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")]
