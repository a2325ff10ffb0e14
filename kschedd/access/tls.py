"""TLS at both ends: version 1.2 or newer, no renegotiation, names checked.

Raises: AccessError on the server's side, OSError on the client's.
"""

import ssl
from collections.abc import Sequence
from pathlib import Path

from kschedd.access.errors import AccessError


def server_context(
    certificate: Path, key: Path, client_ca: Path | None, protocols: Sequence[str] = (), flag: str = "--http"
) -> ssl.SSLContext:
    """Of a server. A client may show a certificate of `client_ca`, and need not. Raises AccessError."""
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
    """Of a client that trusts this CA; without one, those of the system. Raises OSError."""
    context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate is not None:
        context.load_cert_chain(certificate, key, password=_no_password)
    return context


def _no_password() -> str:
    """A key with a pass phrase would be asked for on the terminal, which a daemon has not."""
    return ""
