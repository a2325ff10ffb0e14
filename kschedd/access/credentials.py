"""Credentials of a network listener: tokens and certificates in files, which are read again after a change.

`ListenSettings` contains the settings of the command line, and `Credentials` the content of the files. A reload of the
files either replaces all credentials or changes nothing. Existing connections continue. Raises: AccessError.
"""

import ssl
from pathlib import Path
from typing import Any

import attrs

from kschedd.access.addresses import Address
from kschedd.access.errors import AccessError
from kschedd.access.tls import server_context
from kschedd.access.tokens import StaticTokens, read_tokens
from kschedd.access.users import AUTHENTICATED, User
from kschedd.input_files import open_input


@attrs.frozen
class ListenFlags:
    """The names of the flags for the settings of a listener, for error messages."""

    listen: str
    certificate: str
    key: str
    tokens: str
    client_ca: str


HTTP_FLAGS = ListenFlags("--http", "--http-cert", "--http-key", "--http-tokens", "--http-client-ca")
SOCKET_FLAGS = ListenFlags("--listen", "--tls-cert", "--tls-key", "--tokens", "--client-ca")


@attrs.frozen
class ListenSettings:
    """The listen address and the sources of credentials.

    `open_locally` means that on loopback without TLS, every local user has access. With `rbac`, RBAC objects judge
    every request (`--authorization-mode RBAC`).
    """

    address: Address
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    token_file: Path | None = None
    flags: ListenFlags = HTTP_FLAGS
    open_locally: bool = True
    protocols: tuple[str, ...] = ("http/1.1",)
    rbac: bool = False

    @property
    def local(self) -> bool:
        """True for plaintext connections on loopback."""
        return self.address.loopback and self.certificate is None

    def check(self) -> None:
        """Raise AccessError if remote clients could connect without credentials, or others could read the traffic."""
        flags, tls = self.flags, self.certificate is not None
        if tls != (self.key is not None):
            raise self._error(f"{flags.certificate} and {flags.key} must be given together")
        if self.client_ca is not None and not tls:
            raise self._error(f"{flags.client_ca} requires TLS: give {flags.certificate} and {flags.key} as well")
        reach = f"{self.address} is reachable from other machines: "
        other = f"{flags.certificate} and {flags.key}, or a loopback address"
        if not self.address.loopback and not tls:
            raise self._error(f"{reach}TLS is required; give {other}")
        if self.token_file is not None or self.client_ca is not None:
            return
        if not self.address.loopback:
            raise self._error(
                f"{reach}authentication is required; give {flags.tokens} or {flags.client_ca}, or a loopback address"
            )
        if not self.open_locally:
            raise self._error(f"authentication is required, since any local user could connect; give {flags.tokens}")

    def load(self) -> "Credentials":
        """Read the credentials. Raises AccessError."""
        return Credentials(self, *self.read())

    def read(self) -> tuple[StaticTokens, ssl.SSLContext | None]:
        """Return the tokens and the TLS context. Raises AccessError."""
        self.check()
        flag = self.flags.listen
        tokens = StaticTokens() if self.token_file is None else read_tokens(self.token_file, flag)
        if self.certificate is None or self.key is None:
            return tokens, None
        return tokens, server_context(self.certificate, self.key, self.client_ca, self.protocols, flag)

    def _error(self, why: str) -> AccessError:
        return AccessError(why, self.flags.listen)


@attrs.define(eq=False)
class Credentials:
    settings: ListenSettings
    tokens: StaticTokens
    tls: ssl.SSLContext | None

    def reload(self) -> None:
        """Read the files again. A file that has been replaced by a FIFO does not block.

        Raises AccessError, in which case nothing has changed.
        """
        settings = self.settings
        for file in filter(None, (settings.certificate, settings.key, settings.client_ca)):
            try:
                open_input(file, pipes=False).close()
            except OSError as wrong:
                raise AccessError(f"{file}: cannot be read: {wrong.strerror}", settings.flags.listen) from wrong
        self.tokens, self.tls = settings.read()


def certified(certificate: Any) -> User | None:
    """Return the user named by a verified client certificate: CN is the name of the user, and each O is a group."""
    if not certificate:
        return None
    name, groups = "", []
    for part in certificate.get("subject") or ():
        for field, value in part:
            if field == "commonName":
                name = value
            elif field == "organizationName":
                groups.append(value)
    return User(name, (*groups, AUTHENTICATED)) if name else None
