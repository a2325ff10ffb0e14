"""Endpoints of a daemon: the path of a Unix socket, or `tcp://HOST:PORT` with credentials.

    tcp://HOST:PORT?ca-file=FILE&token-file=FILE&cert-file=FILE&key-file=FILE&server-name=NAME

Missing options are read from environment variables such as $KSCHEDD_CA_FILE and $KSCHEDD_TOKEN_FILE; $KSCHEDD_TOKEN may
contain the token itself. The token is never part of the address, because command lines are visible to all users of a
machine. TLS is used, except for a loopback host without a CA, because a daemon listens without TLS only on loopback.

This module does not import Trio; it reads files with tokens.  Raises: SocketPathError.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

import attrs

from kschedd.access.addresses import SCHEME, Address, read_address
from kschedd.access.errors import AccessError
from kschedd.rpc.errors import NoDaemonError, SocketPathError
from kschedd.rpc.paths import VARIABLE, path_to_connect

if TYPE_CHECKING:
    import ssl

CONNECT_S: Final = 10.0
_OTHER_SCHEME: Final = re.compile(r"[a-z]+://")
_TOKEN: Final = "KSCHEDD_TOKEN"
_OPTIONS: Final = {
    "ca-file": "KSCHEDD_CA_FILE",
    "token-file": "KSCHEDD_TOKEN_FILE",
    "cert-file": "KSCHEDD_CERT_FILE",
    "key-file": "KSCHEDD_KEY_FILE",
    "server-name": "KSCHEDD_SERVER_NAME",
}


@attrs.frozen
class TcpEndpoint:
    """A daemon on the network; `token` is "" if a certificate authenticates the client."""

    address: Address
    token: str = attrs.field(default="", repr=False)
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    server_name: str = ""

    def __str__(self) -> str:
        return f"{SCHEME}{self.address}"

    @property
    def tls(self) -> bool:
        return self.ca is not None or not self.address.loopback


def endpoint_of(given: str | os.PathLike[str] | None) -> Path | TcpEndpoint:
    """Return the given endpoint, or the default endpoint. Raises SocketPathError."""
    text = os.environ.get(VARIABLE) if given is None else os.fspath(given)
    if text is None or not text.startswith(SCHEME):
        if text is not None and (scheme := _OTHER_SCHEME.match(text)):
            raise SocketPathError(text, f"{scheme[0]} is unknown; allowed: a path, or {SCHEME}HOST:PORT")
        return path_to_connect(given)
    where, _, query = text.removeprefix(SCHEME).partition("?")
    shown = SCHEME + where
    chosen = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := [name for name in chosen if name not in _OPTIONS]:
        why = f'"{unknown[0]}" is unknown; allowed: {", ".join(_OPTIONS)}'
        if unknown[0] == "token":
            why = f"a token in an address is seen by everybody: put it into a file and give token-file, or ${_TOKEN}"
        raise SocketPathError(shown, why)
    options = {name: chosen.get(name) or os.environ.get(variable, "") for name, variable in _OPTIONS.items()}
    files = {name: Path(value) if value else None for name, value in options.items()}
    try:
        address = read_address(where, "", "tcp://127.0.0.1:7443")
        token = _token(files["token-file"])
    except AccessError as wrong:
        raise SocketPathError(shown, wrong.why) from wrong
    if not token and files["cert-file"] is None:
        raise SocketPathError(shown, f"a token is required: set token-file, ${_TOKEN}_FILE or ${_TOKEN}")
    return TcpEndpoint(address, token, files["ca-file"], files["cert-file"], files["key-file"], options["server-name"])


def _token(file: Path | None) -> str:
    """Return the token. Raises AccessError."""
    from kschedd.access.tokens import is_token, read_secret

    token = os.environ.get(_TOKEN, "") if file is None else read_secret(file, "").strip()
    if token and not is_token(token):
        raise AccessError(f"{file or '$' + _TOKEN}: a token must be printable ASCII without spaces", "")
    return token


def tls_context(endpoint: TcpEndpoint) -> ssl.SSLContext:
    """Return the TLS context. Raises SocketPathError."""
    from kschedd.access.tls import client_context

    try:
        return client_context(endpoint.ca, endpoint.certificate, endpoint.key)
    except OSError as error:
        raise SocketPathError(str(endpoint), f"its CA or certificate cannot be used: {error}") from error


def connect(endpoint: Path | TcpEndpoint) -> socket.socket:
    """Open a blocking connection. Raises NoDaemonError and SocketPathError."""
    opened: socket.socket | None = None
    try:
        if isinstance(endpoint, Path):
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            opened.connect(str(endpoint))
            return opened
        host, port = endpoint.address.host, endpoint.address.port
        opened = socket.create_connection((host, port), CONNECT_S)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if endpoint.tls:
            return tls_context(endpoint).wrap_socket(opened, server_hostname=endpoint.server_name or host)
        return opened
    except (OSError, SocketPathError) as error:
        if opened is not None:
            opened.close()
        raise connection_error(endpoint, error) from error


def connection_error(endpoint: Path | TcpEndpoint, error: Exception) -> Exception:
    """Return kschedd's exception for a failed connection."""
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return NoDaemonError(str(endpoint))
    if isinstance(error, OSError):
        return SocketPathError(str(endpoint), f"cannot connect: {error.strerror or error}")
    return error


def lost_before_admission(endpoint: TcpEndpoint) -> SocketPathError:
    """Return the error for a connection that ended before the daemon answered the authentication request."""
    hint = "" if endpoint.tls else "; if it has TLS, name its CA: ca-file, or $KSCHEDD_CA_FILE"
    return SocketPathError(str(endpoint), f"it closed the connection instead of answering{hint}")
