"""HTTP calls of extenders: the parts of a request, the limit on the response, and the error texts.

`send` makes one call in the thread of its caller. The daemon makes the calls in its event loop, with the same functions
(`kschedd.actors.scheduler.extenders`).

Up to ten redirects are followed, cookies are not stored, and the daemon reuses connections, as Go's client does.
`httpTimeout` limits the whole call. A response longer than MAX_ANSWER_BYTES is rejected; kube-scheduler has no limit.

Source: Kubernetes v1.34, scheduler/extender.go (makeTransport, send); Go 1.24, net/http.
"""

import errno
import os
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import attrs
import httpx

from kschedd.config.model import Extender, ExtenderTLS
from kschedd.errors import KscheddError
from kschedd.extenders.calls import ExtenderCall, ExtenderFailure
from kschedd.extenders.request_body import RequestBody

MAX_ANSWER_BYTES: Final = 64 << 20
SMALL_BYTES: Final = 1 << 14  # maximum size of a body that is sent or read in one step
REDIRECTS: Final = 10
HEADERS: Final = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "kschedd"}
LATE: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
LATE_BODY: Final = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"


@attrs.define(eq=False)
class ExtenderTLSError(KscheddError):
    """Certificates or keys for an extender cannot be used."""

    url: str
    why: str

    def __str__(self) -> str:
        return f"extender {self.url}: tlsConfig: {self.why}"


def tls_context(extender: Extender) -> ssl.SSLContext:
    """Return the TLS context with the extender's CA and kschedd's client certificate. Raises ExtenderTLSError."""
    tls = extender.tls or ExtenderTLS()
    reading = _named("ca", tls.ca_data, tls.ca_file)
    try:
        has_ca = bool(tls.ca_data or tls.ca_file)
        context = ssl.create_default_context(
            cafile=None if tls.ca_data else tls.ca_file or None, cadata=tls.ca_data.decode("ascii") or None
        )
        if tls.insecure or (extender.enable_https and not has_ca):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls.cert_data or tls.cert_file:
            reading = f"{_named('cert', tls.cert_data, tls.cert_file)}, {_named('key', tls.key_data, tls.key_file)}"
            _load_certificate(context, tls)
    except (OSError, ValueError) as wrong:  # ssl.SSLError is an OSError; for a missing file it contains no file name
        raise ExtenderTLSError(extender.url_prefix, f"{reading}: {_words(wrong)}") from wrong
    return context


def _named(what: str, data: bytes, file: str) -> str:
    """Return the configuration field from which a certificate or key is read."""
    return f"{what}Data" if data else f"{what}File {file}"


def _load_certificate(context: ssl.SSLContext, tls: ExtenderTLS) -> None:
    """Load the client certificate. OpenSSL reads only files, so inline data is written to a temporary file."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, data, file in (("crt", tls.cert_data, tls.cert_file), ("key", tls.key_data, tls.key_file)):
            if data:
                file = os.path.join(folder, name)
                with open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as out:
                    out.write(data)
            paths.append(file)
        certificate, key = paths
        context.load_cert_chain(certificate, key, password=lambda: b"")


def async_client(extender: Extender) -> httpx.AsyncClient:
    """Return a client for the extender. Raises ExtenderTLSError."""
    return httpx.AsyncClient(**_settings(extender))


@lru_cache(16)
def _settings(extender: Extender) -> dict[str, Any]:
    host = httpx.URL(extender.url_prefix).host
    return {
        "verify": tls_context(extender),
        "headers": HEADERS,
        "follow_redirects": True,
        "max_redirects": REDIRECTS,
        "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=())),
        "timeout": None,
        # Go uses no proxy for the local host.
        "trust_env": host not in ("localhost", "::1") and not host.startswith("127."),
    }


def extensions(extender: Extender) -> dict[str, Any]:
    """Return httpx's extensions for a request to the extender."""
    name = extender.tls.server_name if extender.tls is not None else ""
    return {"sni_hostname": name} if name else {}


@attrs.define(eq=False)
class AnswerBody:
    """The part of a response body that has been read."""

    too_long: bool = False
    size: int = 0
    _parts: list[bytes] = attrs.field(factory=list)

    def add(self, part: bytes) -> None:
        self.size += len(part)
        self.too_long = self.size > MAX_ANSWER_BYTES
        if not self.too_long:
            self._parts.append(part)

    def whole(self) -> bytes:
        return b"".join(self._parts)


def request(client: httpx.AsyncClient, call: ExtenderCall, parts: Sequence[bytes]) -> httpx.Request:
    """Return the HTTP request of the call; these parts are its body."""
    size = str(sum(map(len, parts)))
    made = client.build_request(
        "POST", call.url, headers={"Content-Length": size}, extensions=extensions(call.extender)
    )
    made.stream = RequestBody(parts)
    return made


def too_long(call: ExtenderCall) -> ExtenderFailure:
    return call.failed(f"the response exceeds {MAX_ANSWER_BYTES >> 20} MiB")


def failure(call: ExtenderCall, fault: Exception, *, reading: bool) -> ExtenderFailure:
    """Return the failure of the request, or of reading its response, with Go's text."""
    if isinstance(fault, ExtenderFailure):
        return fault
    if isinstance(fault, KscheddError):
        return ExtenderFailure(str(fault))
    if isinstance(fault, httpx.TooManyRedirects):
        return call.failed(f"stopped after {REDIRECTS} redirects")
    if isinstance(fault, httpx.TimeoutException):
        return ExtenderFailure(LATE_BODY) if reading else call.failed(LATE)
    if reading and isinstance(fault, httpx.RemoteProtocolError | httpx.ReadError):
        return ExtenderFailure("unexpected EOF")
    if isinstance(fault, httpx.RemoteProtocolError) and "disconnected" in str(fault):
        return call.failed("EOF")
    return call.failed(_cause(call, fault))


def _cause(call: ExtenderCall, fault: BaseException) -> str:
    at: BaseException | None = fault
    while at is not None:
        if isinstance(at, ssl.SSLCertVerificationError):
            return f"tls: failed to verify certificate: x509: {at.verify_message}"
        if isinstance(at, ssl.SSLError):
            return f"tls: {_words(at)}"
        if isinstance(at, OSError) and at.errno is not None and at.errno > 0:
            url = httpx.URL(call.url)
            port = url.port or (443 if url.scheme == "https" else 80)
            verb = "connect" if at.errno != errno.ECONNRESET else "read"
            return f"dial tcp {url.host}:{port}: {verb}: {os.strerror(at.errno).lower()}"
        at = at.exceptions[0] if isinstance(at, BaseExceptionGroup) else at.__cause__ or at.__context__
    return _words(fault)


def _words(fault: BaseException) -> str:
    return getattr(fault, "strerror", None) or getattr(fault, "reason", None) or str(fault) or type(fault).__name__


def send(call: ExtenderCall) -> Any:
    """Make the call in this thread; return the result, or an ExtenderFailure as a value."""
    limit_s = call.extender.http_timeout_s
    until = time.monotonic() + limit_s
    reading = False
    try:
        content, more = b"".join(call.write()), extensions(call.extender)
        with (
            httpx.Client(**{**_settings(call.extender), "timeout": limit_s}) as client,
            _closed_after(limit_s, client),
            client.stream("POST", call.url, content=content, extensions=more) as response,
        ):
            reading = True
            body = AnswerBody()
            if response.status_code == 200:
                for part in response.iter_raw():
                    body.add(part)
                    if body.too_long:
                        return too_long(call)
                    if time.monotonic() > until:
                        return ExtenderFailure(LATE_BODY)
        return call.read(response.status_code, body.whole())
    except Exception as fault:  # httpx may raise any exception because of an extender's response
        late = time.monotonic() >= until and not isinstance(fault, ExtenderFailure)
        return failure(call, httpx.ReadTimeout("") if late else fault, reading=reading)


@contextmanager
def _closed_after(seconds: float, client: httpx.Client) -> Iterator[None]:
    """Close the client after this time: httpx limits only single reads, and a slow sender never exceeds that limit."""
    timer = threading.Timer(seconds, client.close)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
