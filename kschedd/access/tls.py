"""TLS contexts for server and client: TLS 1.2 or newer, no renegotiation, verified names.

Raises: AccessError for a server, and OSError for a client.
"""

import ssl
from collections.abc import Sequence
from pathlib import Path

from kschedd.access.errors import AccessError


def server_context(
    certificate: Path, key: Path, client_ca: Path | None, protocols: Sequence[str] = (), flag: str = "--http"
) -> ssl.SSLContext:
    """Return a server's context. A client certificate signed by `client_ca` is optional. Raises AccessError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    if protocols:
        context.set_alpn_protocols(list(protocols))
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL
    except (OSError, ssl.SSLError) as wrong:
        raise AccessError(f"the certificate, its key or the client CA cannot be used: {wrong}", flag) from wrong
    return context


def client_context(ca: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """Return a client's context that trusts this CA; the default is the CAs of the system. Raises OSError."""
    context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate is not None:
        context.load_cert_chain(certificate, key, password=_no_password)
    return context


def _no_password() -> str:
    """Return no pass phrase, so that an encrypted key does not prompt on a terminal, because a daemon has none."""
    return ""
