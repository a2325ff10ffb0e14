"""TCP listeners: the ports of an address, and TLS connections that use the current certificate.

Owns: the listening sockets, until they are closed. Raises: AccessError if the address cannot be used.
"""

import contextlib
import resource
from typing import Final

import attrs
import trio

from kschedd.access.credentials import Credentials, ListenSettings
from kschedd.access.errors import AccessError

_BACKLOG: Final = 1024
_FILES: Final = 4096  # number of file descriptors reserved for clients; each client needs one


async def open_listeners(settings: ListenSettings) -> list[trio.SocketListener]:
    """Open listeners on the address of the settings. Raises AccessError."""
    address = settings.address
    try:
        return await trio.open_tcp_listeners(address.port, host=address.host, backlog=_BACKLOG)
    except OSError as error:
        flag = settings.flags.listen
        raise AccessError(f"cannot listen on {address}: {error.strerror or error}", flag) from error


@attrs.frozen(eq=False)
class TlsListener(trio.abc.Listener[trio.SSLStream[trio.SocketStream]]):
    """A listener for TLS connections, which perform the handshake later."""

    _listener: trio.SocketListener
    _credentials: Credentials

    async def accept(self) -> trio.SSLStream[trio.SocketStream]:
        return in_tls(await self._listener.accept(), self._credentials)

    async def aclose(self) -> None:
        await self._listener.aclose()


def in_tls(stream: trio.SocketStream, credentials: Credentials) -> trio.SSLStream[trio.SocketStream]:
    """Return the server's side of a TLS connection with the current certificate."""
    assert credentials.tls is not None, "plaintext has no certificate"
    return trio.SSLStream(stream, credentials.tls, server_side=True, https_compatible=True)


def raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
