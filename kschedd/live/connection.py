"""ServerConnection: HTTP requests to the API server of a kubeconfig, with its credentials.

If the server rejects the credentials (401), the kubeconfig is read again, once for all waiting requests. Responses that
are being read continue with the old credentials.

Raises: LiveError and its subclasses NotServed, HistoryLost and RequestFailed; nothing else.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import attrs
import msgspec
import trio

from kschedd.http.client import HttpAnswer, HttpClient
from kschedd.live.credentials import SILENCE_S, ServerCredentials
from kschedd.live.errors import HistoryLost, LiveError, NotServed, RequestFailed, converted, faults_of
from kschedd.values import fast_frozen

JSON: Final = "application/json"
_REFUSALS: Final = {401: LiveError, 403: NotServed, 404: NotServed, 405: NotServed, 410: HistoryLost}  # by HTTP status
_LONGEST_REFUSAL: Final = 1 << 16  # maximum number of bytes to read of the body
_REDIRECT, _UNAUTHORIZED, _TOO_MANY = 300, 401, 429  # integers, because comparing with an HTTPStatus is slower


@fast_frozen(eq=False)
class ServerRequest:
    """A request.

    `path` is the path below the server's address. `body` is sent as JSON with this media type (None: no body).
    """

    method: str
    path: str
    params: Mapping[str, str] | None = None
    body: Any = None
    media_type: str = JSON

    @property
    def target(self) -> str:
        return f"/{self.path}?{urlencode(self.params)}" if self.params else f"/{self.path}"

    def encoded(self) -> bytes:
        """Return the body as JSON in bytes."""
        return msgspec.json.encode(self.body)

    def __str__(self) -> str:
        return f"{self.method} /{self.path}"


@attrs.frozen(eq=False)
class _Session:
    """An HTTP client with one set of credentials."""

    server: str
    context: str
    client: HttpClient

    @classmethod
    async def begun(cls, kubeconfig: str, context: str) -> "_Session":
        """Return a new session with the current credentials. Raises LiveError."""
        found = await ServerCredentials.read(kubeconfig, context)
        headers = [("User-Agent", "kschedd"), ("Accept", JSON), ("Accept-Encoding", "gzip")]
        if found.token:
            headers.append(("Authorization", f"Bearer {found.token}"))
        return cls(found.server, found.context, HttpClient(found.endpoint, headers))


@attrs.define(eq=False)
class ServerConnection:
    """A connection to an API server. `kubeconfig` and `context` are the user's values, or "" for the defaults."""

    kubeconfig: str
    context: str
    _session: _Session
    _renewing: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    @classmethod
    async def of(cls, kubeconfig: str = "", context: str = "") -> "ServerConnection":
        """Obtain credentials and return the connection; no request is sent yet."""
        if kubeconfig and not await (await trio.Path(kubeconfig).expanduser()).is_file():
            raise LiveError(kubeconfig, "cannot be read: there is no such file")
        return cls(kubeconfig, context, await _Session.begun(kubeconfig, context))

    @property
    def url(self) -> str:
        return self._session.server

    @property
    def used_context(self) -> str:
        return self._session.context

    async def aclose(self) -> None:
        await self._session.client.aclose()

    @asynccontextmanager
    async def request(self, asked: ServerRequest) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request; yield the body of the response in parts.

        The response must begin within `SILENCE_S`.
        """
        with faults_of(self.url, f"{asked}: "):
            with trio.fail_after(SILENCE_S):
                response = await self._send(asked)
            try:
                if response.status >= _REDIRECT:
                    raise await _refusal(self.url, asked, response)
                yield response
            finally:
                await response.aclose()

    async def answer(self, asked: ServerRequest, most: int) -> bytes | bytearray:
        """Send a request; return the body of the response, at most `most` bytes. The caller must limit the time."""
        try:
            response = await self._send(asked)
            try:
                if response.status >= _REDIRECT:
                    raise await _refusal(self.url, asked, response)
                return await response.read(most)
            finally:
                await response.aclose()
        except LiveError:
            raise
        except Exception as fault:
            raise converted(fault, self.url, f"{asked}: ") from None

    async def _send(self, asked: ServerRequest) -> HttpAnswer:
        """Send a request; if the server rejects the credentials, send the request again with new credentials."""
        session, media_type, body = self._session, "", b""
        if asked.body is not None:
            media_type, body = asked.media_type, asked.encoded()
        response = await session.client.send(asked.method, asked.target, media_type, body)
        if response.status != _UNAUTHORIZED:
            return response
        await response.aclose()
        await self._renew(session)
        return await self._session.client.send(asked.method, asked.target, media_type, body)

    async def _renew(self, refused: _Session) -> None:
        async with self._renewing:
            if self._session is refused:  # if the session differs, another task has renewed the credentials
                self._session = await _Session.begun(self.kubeconfig, self.context)
                await refused.client.aclose()


async def _refusal(server: str, asked: ServerRequest, response: HttpAnswer) -> LiveError:
    """Return the error for a rejected request, with the message of the Status, if any.

    Redirects are errors, because following a redirect could send the credentials to any server.
    """
    code = response.status
    if code < HTTPStatus.BAD_REQUEST:
        to = response.headers.get("location", "")[:200]
        why = f'{asked}: answered with a redirect ({code}) to "{to}", which is not followed'
        return LiveError(server, f"{why}: put the address of the API server into the kubeconfig")
    status = await _status_in(response)
    why = f"{asked}: HTTP {code} {_phrase(code)}"
    if status.message:
        why = f"{why}: {' '.join(status.message.split())[:1000]}"
    if code == HTTPStatus.UNAUTHORIZED:
        why = f"the kubeconfig's credentials were rejected: {why}"
    return _REFUSALS.get(code, RequestFailed)(
        server, why, code, status.message or "", retry_after_s=_retry_after(response)
    )


async def _status_in(response: HttpAnswer) -> "_Status":
    body = b""
    with trio.fail_after(SILENCE_S):
        async for piece in response:
            body += piece
            if len(body) >= _LONGEST_REFUSAL:
                break
    try:
        return msgspec.json.decode(body, type=_Status)
    except msgspec.MsgspecError:
        return _Status()  # the response is from a proxy or another kind of server


def _retry_after(response: HttpAnswer) -> float | None:
    """Return the pause in seconds that the response requests before the next attempt."""
    seconds = response.headers.get("retry-after", "")
    if response.status != _TOO_MANY and response.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    return float(seconds) if seconds.isdecimal() else None


def _phrase(code: int) -> str:
    return HTTPStatus(code).phrase if code in _CODES else "Unknown"


_CODES: Final = frozenset(HTTPStatus)


class _Status(msgspec.Struct):
    message: str | None = None
