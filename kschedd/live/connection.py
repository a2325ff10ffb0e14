"""ServerConnection: HTTP requests to the API server of a kubeconfig, with its credentials.

kr8s reads the kubeconfig as kubectl does (contexts, exec plugins, the service account within a cluster). If the server
rejects the credentials (401), the kubeconfig is read again, once for all waiting requests. Responses that are being
read continue with the old credentials.

Raises: LiveError and its subclasses NotServed, HistoryLost and RequestFailed; nothing else.
"""

import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
import trio

from kschedd.live.errors import HistoryLost, LiveError, NotServed, RequestFailed, answer, faults_of

JSON: Final = "application/json"
SILENCE_S: Final = 30  # maximum wait in seconds for a server or a credentials plugin
_REFUSALS: Final = {401: LiveError, 403: NotServed, 404: NotServed, 405: NotServed, 410: HistoryLost}  # by HTTP status
_LONGEST_REFUSAL: Final = 1 << 16  # maximum number of bytes to read of the body
_FILES: Final = ("server_ca_file", "client_cert_file", "client_key_file")  # attributes of kr8s' KubeAuth
_FILE_FIELDS: Final = ("certificate-authority", "client-certificate", "client-key")  # fields of a kubeconfig


@attrs.frozen(eq=False)
class ServerRequest:
    """A request.

    `path` is the path below the server's address. `body` is sent as JSON with this media type (None: no body).
    """

    method: str
    path: str
    params: Mapping[str, str] | None = None
    body: Any = None
    media_type: str = JSON


@attrs.define(eq=False)
class _Session:
    """An HTTP client with one set of credentials; after its replacement, it is closed when its last request ends."""

    server: str
    context: str
    client: Any  # httpx.AsyncClient
    extensions: dict[str, str]
    requests: int = 0
    is_replaced: bool = False

    async def close_if_unused(self) -> None:
        if self.is_replaced and not self.requests:
            await self.client.aclose()


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
        return cls(kubeconfig, context, await _session(kubeconfig, context))

    @property
    def url(self) -> str:
        return self._session.server

    @property
    def used_context(self) -> str:
        return self._session.context

    async def aclose(self) -> None:
        self._session.is_replaced = True
        await self._session.close_if_unused()

    @asynccontextmanager
    async def request(self, asked: ServerRequest) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request; yield the body of the response in parts."""
        async with AsyncExitStack() as opened:
            with faults_of(self.url):
                session = self._session
                response = await opened.enter_async_context(_answer(session, asked))
                if response.status_code == 401:
                    await self._renew(session)
                    response = await opened.enter_async_context(_answer(self._session, asked))
                if response.is_redirect:
                    raise _redirected(self.url, response)
                if response.is_error:
                    raise await _refusal(self.url, response)
                pieces = await opened.enter_async_context(_reading(response))
            with faults_of(self.url):
                yield pieces

    async def _renew(self, refused: _Session) -> None:
        async with self._renewing:
            if self._session is not refused:
                return  # another task has renewed the credentials
            self._session = await _session(self.kubeconfig, self.context)
            refused.is_replaced = True
            await refused.close_if_unused()


async def _session(kubeconfig: str, context: str) -> _Session:
    """Return a session with current credentials from the kubeconfig, its plugin or the service account.

    Raises LiveError.
    """
    try:
        import httpx
        from kr8s._auth import KubeAuth  # kr8s' Api class is not used, because it has one session for all requests
    except ImportError:
        raise LiveError("--mirror and --schedule", "kr8s is not installed: pip install 'kschedd[live]'") from None
    where = kubeconfig or "the kubeconfig"
    auth: Any = KubeAuth(kubeconfig=kubeconfig or None, context=context or None)
    try:
        with trio.fail_after(SILENCE_S):
            await auth.reauthenticate()
        try:
            verify = await auth.ssl_context()
        finally:
            await trio.to_thread.run_sync(_remove_copies, auth)
        client = await trio.to_thread.run_sync(  # slow, because the system's certificates are read
            partial(
                httpx.AsyncClient,
                base_url=auth.server,
                headers={"User-Agent": "kschedd", "Accept": "application/json"}
                | ({"Authorization": f"Bearer {auth.token}"} if auth.token else {}),
                verify=verify,
                timeout=None,
                follow_redirects=False,  # only this server may receive the credentials
                proxy=auth.proxy,
            )
        )
    except trio.TooSlowError:
        raise LiveError(where, f"its credentials plugin did not finish within {SILENCE_S} s") from None
    except (AttributeError, IndexError, KeyError, TypeError) as fault:
        raise LiveError(where, f"is not a usable kubeconfig ({type(fault).__name__}: {fault})") from None
    except Exception as fault:  # an invalid file, or an error of a credentials plugin
        raise LiveError(where, answer(fault)) from None
    extensions = {} if auth.tls_server_name is None else {"sni_hostname": auth.tls_server_name}
    return _Session(str(auth.server), str(auth.active_context), client, extensions)


def _remove_copies(auth: Any) -> None:
    """Remove the certificates and keys that kr8s copies from a kubeconfig into new files."""
    config = getattr(auth, "kubeconfig", None)
    entries = [] if config is None else [*config.clusters, *config.users]
    bodies = [entry.get("cluster") or entry.get("user") or {} for entry in entries]
    named = {Path(str(body[field])).name for body in bodies for field in _FILE_FIELDS if field in body}
    for attribute in _FILES:
        file = Path(str(getattr(auth, attribute) or "."))
        if file.parent == Path(tempfile.gettempdir()) and file.name not in named:
            file.unlink(missing_ok=True)


@asynccontextmanager
async def _answer(session: _Session, asked: ServerRequest) -> AsyncGenerator[Any, None]:
    from kschedd.request_body import RequestBody  # imported on demand, because httpx is slow to import

    session.requests += 1
    try:
        body = b"" if asked.body is None else msgspec.json.encode(asked.body)
        request = session.client.build_request(
            asked.method,
            asked.path,
            params=asked.params,
            content=body or None,
            headers=None if asked.body is None else {"Content-Type": asked.media_type},
            extensions=session.extensions,
        )
        if body:
            request.stream = RequestBody([body])
        with trio.fail_after(SILENCE_S):
            response = await session.client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()
    finally:
        session.requests -= 1
        await session.close_if_unused()


@asynccontextmanager
async def _reading(response: Any) -> AsyncIterator[AsyncIterator[bytes]]:
    """Yield the body in parts.

    The rest of an unread body is cancelled here, because httpx's nested generators would not end otherwise.
    """
    pieces = response.aiter_bytes()
    try:
        yield pieces
    finally:
        with trio.CancelScope() as cut:
            cut.cancel()
            while await anext(pieces, None) is not None:
                pass  # these parts had already arrived


def _redirected(url: str, response: Any) -> LiveError:
    """Return the error for a redirect; redirects are not followed, because any server could receive the credentials."""
    to = str(response.headers.get("location", ""))[:200]
    why = f'answered with a redirect ({response.status_code}) to "{to}", which is not followed'
    return LiveError(url, f"{why}: put the address of the API server into the kubeconfig")


async def _refusal(server: str, response: Any) -> LiveError:
    """Return the error for a rejected request, with the message of the Status, if any."""
    body = b""
    with trio.fail_after(SILENCE_S):
        async with _reading(response) as pieces:
            while len(body) < _LONGEST_REFUSAL and (piece := await anext(pieces, None)) is not None:
                body += piece
    code = response.status_code
    why = f"HTTP {code} {response.reason_phrase}"
    try:
        status = msgspec.json.decode(body, type=_Status)
    except msgspec.MsgspecError:
        status = _Status()  # the response is from a proxy or another kind of server
    if status.message:
        why = f"{why}: {' '.join(status.message.split())[:1000]}"
    if code == 401:
        why = f"the kubeconfig's credentials were rejected: {why}"
    return _REFUSALS.get(code, RequestFailed)(server, why, code, status.message or "")


class _Status(msgspec.Struct):
    message: str | None = None
