"""Listeners on TCP: the ports of an address, and connections wrapped in TLS by whatever certificate is in force.

Owns: the listening sockets, until they are closed.  Raises: AccessError where the address cannot be used.
"""

import contextlib
import resource
from typing import Final

import attrs
import trio

from kschedd.access.credentials import Credentials, ListenSettings
from kschedd.access.errors import AccessError

_BACKLOG: Final = 1024
_FILES: Final = 4096  # descriptors: each client is a connection


async def open_listeners(settings: ListenSettings) -> list[trio.SocketListener]:
    """Raises AccessError."""
    address = settings.address
    try:
        return await trio.open_tcp_listeners(address.port, host=address.host, backlog=_BACKLOG)
    except OSError as error:
        flag = settings.flags.listen
        raise AccessError(f"cannot listen on {address}: {error.strerror or error}", flag) from error


@attrs.frozen(eq=False)
class TlsListener(trio.abc.Listener[trio.SSLStream[trio.SocketStream]]):
    """Connections with TLS, whose handshake is still to be done."""

    _listener: trio.SocketListener
    _credentials: Credentials

    async def accept(self) -> trio.SSLStream[trio.SocketStream]:
        return in_tls(await self._listener.accept(), self._credentials)

    async def aclose(self) -> None:
        await self._listener.aclose()


def in_tls(stream: trio.SocketStream, credentials: Credentials) -> trio.SSLStream[trio.SocketStream]:
    """The server's side of a connection, by the certificate that is in force now."""
    assert credentials.tls is not None, "plaintext has no certificate"
    return trio.SSLStream(stream, credentials.tls, server_side=True, https_compatible=True)


def raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
