"""The page in the browser, under `/web/` on the port of the REST API.

    GET  /web/                  the page; /web/NAME is one of its files
    GET  /web/login?code=CODE   exchanges a one-time code for a session cookie, and redirects to the page
    POST /web/call/METHOD       calls a method of the socket; parameters and answer are JSON
    POST /web/call/page.info    returns the user, and whether the controls are available

A request is authenticated by its session cookie, or as a request to the REST API is. Users may read, and may write in
forks that they created. With `controls` (`kschedd run --web-controls`), users that may write may also stop and step the
scheduler and move virtual time. All other methods are rejected.

Other sites cannot make requests in the user's name: a call requires a header field that other sites may not send, the
cookie is not sent with their requests, and the Host of a request on loopback must be a loopback name.

Raises nothing: each error becomes a response.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final
from urllib.parse import parse_qs

import attrs
import msgspec
import structlog

from kschedd.access.audit import AuditOutcome
from kschedd.access.audit_log import AuditLog
from kschedd.access.users import READ_ONLY, Caller, User
from kschedd.answers import plain
from kschedd.apiserver.access import Access
from kschedd.apiserver.codec.negotiation import json_response
from kschedd.apiserver.codec.status import StatusError
from kschedd.errors import KscheddError
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import HttpResponse, Peer
from kschedd.page.files import assets
from kschedd.service.errors import RpcError
from kschedd.service.params import bind
from kschedd.service.performing import Authorize, MethodCalls
from kschedd.service.table import Call, Large, Method, StreamProducer, find_method
from kschedd.service.turns import Turns
from kschedd.service.wire_errors import only_of_group, outcome_of, wire_error
from kschedd.service.workers import FairShares, Workers
from kschedd.threads import in_thread
from kschedd.web.logins import Logins

PATH: Final = "/web/"
_FIELD: Final = "x-kschedd-page"  # a header field that another site may send only if this server permits it
_COOKIE: Final = "kschedd-session"
_MOST_BODY: Final = 1 << 20
_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
#: the methods that change the cluster itself, which a user may call with `--web-controls`
CONTROLS: Final = frozenset(("debug.pause", "debug.resume", "debug.step", "time.advance", "time.set_speed"))
_SECURITY: Final = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)

Perform = Callable[[Method, Mapping[str, Any]], Awaitable[Any]]

log = structlog.get_logger("kschedd.web")


@attrs.frozen(eq=False)
class _File:
    body: bytes
    content_type: str
    etag: str


def _read_files() -> dict[str, _File]:
    """Return the files of the page by name."""
    found = {}
    for name, body in assets().items():
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        found[name] = _File(body, f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8", etag)
    return found


@attrs.frozen(eq=False)
class _PageClient:
    """The services that a call from the page may use. A browser has no session that ends.

    The control of the debugger therefore ends with each call (`WebPage._controlled`).
    """

    turns: Turns
    workers: Workers
    methods: Mapping[str, Method]
    identity: Mapping[str, Any]
    caller: Caller

    def cancel_stream(self, stream_id: int) -> bool:
        return False

    def at_end(self, name: str, do: Callable[[], Awaitable[None]]) -> None:
        """Ignore the callback."""


@attrs.define(eq=False)
class _LastItem:
    """A stream whose items are not sent; the last one is the answer."""

    id: int = 1
    item: Any = None

    async def send(self, item: Any) -> None:
        self.item = item

    async def send_many(self, items: Any) -> None:
        self.item = items[-1]


@attrs.define(eq=False)
class WebPage:
    """The handler of the requests under `/web/`. Calling the handler with a request returns the answer."""

    _methods: Mapping[str, Method]
    _identity: Mapping[str, Any]
    _access: Access
    _shares: FairShares
    _audit: AuditLog | None
    _authorize: Authorize | None
    _controls: bool
    logins: Logins = attrs.field(factory=Logins)
    _files: Mapping[str, _File] = attrs.field(factory=_read_files, init=False)

    def serves(self, request: HttpRequest) -> bool:
        return request.target.startswith(b"/web/") or request.target in (b"/web", b"/web?")

    def admits(self, request: HttpRequest, peer: Peer) -> str | None:
        """Return the user name of a request; None if the request is rejected because of its headers."""
        try:
            return self._user_of(request, peer).name
        except StatusError:
            return None

    async def __call__(self, request: HttpRequest, peer: Peer) -> HttpResponse:
        response = await self._answer(request, peer)
        return attrs.evolve(response, headers=(*response.headers, *_SECURITY))

    async def _answer(self, request: HttpRequest, peer: Peer) -> HttpResponse:
        path, _, query = request.target.decode("latin-1").partition("?")
        if path == "/web":
            return HttpResponse(308, (("Location", PATH),))
        name = path.removeprefix(PATH)
        if name.startswith("call/") and request.method == "POST":
            return await self._called(request, peer, name.removeprefix("call/"))
        if request.method not in ("GET", "HEAD"):
            return _text(405, f"{request.method} is not allowed here", ("Allow", "GET, HEAD"))
        if name == "login":
            return self._log_in(query)
        file = self._files.get(name or "index.html")
        if file is None:
            return _text(404, "no such page; the page is at /web/")
        if request.headers.get("if-none-match") == file.etag:
            return HttpResponse(304, (("ETag", file.etag),))
        fields = ("Content-Type", file.content_type), ("ETag", file.etag), ("Cache-Control", "no-cache")
        return HttpResponse(200, fields, file.body)

    def _log_in(self, query: str) -> HttpResponse:
        session = self.logins.exchange((parse_qs(query).get("code") or [""])[0])
        if session is None:
            return _text(403, "this link is used or too old; `kschedd web` prints a new one")
        secure = "; Secure" if self._access.credentials.tls is not None else ""
        cookie = f"{_COOKIE}={session}; Path={PATH}; HttpOnly; SameSite=Strict{secure}"
        return HttpResponse(303, (("Location", PATH), ("Set-Cookie", cookie), ("Cache-Control", "no-store")))

    def _user_of(self, request: HttpRequest, peer: Peer) -> User:
        """Return the user of a request. Raises StatusError."""
        for part in request.headers.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            user = self.logins.user_of(value) if name == _COOKIE else None
            if user is not None:
                return self._access.accepted(request, user)
        return self._access.authenticated(request, peer)

    async def _called(self, request: HttpRequest, peer: Peer, name: str) -> HttpResponse:
        try:
            user = self._user_of(request, peer)
            self._check_same_site(request)
        except StatusError as refused:
            code = "unauthenticated" if refused.code == 401 else "forbidden"
            hint = "; `kschedd web` prints a link that logs this browser in" if refused.code == 401 else ""
            return _failed(code, f"{refused.message}{hint}")
        try:
            return await self._result(request, peer, user, name)
        except Exception as raised:
            error = only_of_group(raised)
            if isinstance(error, KscheddError):
                return _failed(*wire_error(error))
            log.error("web.handler_bug", method=name[:100], exc_info=raised)
            return _failed("internal", f"{name[:100]}: a bug in the daemon; its log has the traceback")

    def _check_same_site(self, request: HttpRequest) -> None:
        origin = request.headers.get("origin", "")
        if request.headers.get(_FIELD) != "1" or (
            origin and origin.partition("://")[2] != request.headers.get("host", "")
        ):
            raise StatusError(403, "Forbidden", "only the page itself may call methods")

    async def _result(self, request: HttpRequest, peer: Peer, user: User, name: str) -> HttpResponse:
        """Call the method, and return its answer. Raises KscheddError."""
        if name == "page.info":
            return _succeeded({"user": user.name, "controls": self._controls and not user.read_only}, request.headers)
        method = find_method(self._methods, name)
        self._check_method(method)
        params = _params_of(request.body)
        if method.name not in CONTROLS:
            user = attrs.evolve(user, groups=(*user.groups, READ_ONLY))
        client = f"web {user.name} from {peer.address}"
        services = _PageClient(
            self._shares.turns,
            self._shares.workers,
            self._methods,
            self._identity,
            Caller(user, address=peer.address),
        )
        feeds: list[StreamProducer] = []

        def open_stream(feed: StreamProducer) -> int:
            feeds.append(feed)
            return 1

        calls = MethodCalls(self._audit, self._authorize, lambda: self._large_slot(client), outcome_of)

        async def perform(method: Method, params: Mapping[str, Any]) -> Any:
            given = bind(method.name, method.params, [params])
            return await calls.perform(method, Call(method.name, given, client, services, open_stream))

        if method.name.startswith("debug.") and method.name in CONTROLS:
            result = await self._controlled(perform, method, params)
        else:
            result = await perform(method, params)
        for feed in feeds:
            last = _LastItem()
            await feed(last)
            result = last.item
        return await in_thread(lambda: _succeeded(result, request.headers))

    async def _controlled(self, perform: Perform, method: Method, params: Mapping[str, Any]) -> Any:
        """Call a method that controls the debugger, and give up its control; scheduling remains stopped or running.

        Raises KscheddError if another client controls the debugger.
        """
        await perform(self._methods["debug.attach"], {"keep": True})
        try:
            return await perform(method, params)
        finally:
            await perform(self._methods["debug.detach"], {})

    def _check_method(self, method: Method) -> None:
        allowed = (method.reads and not method.outside and not method.item) or method.own_forks
        if allowed or (self._controls and method.name in CONTROLS):
            return
        hint = ": start the daemon with --web-controls" if method.name in CONTROLS else ""
        raise RpcError("forbidden", f"the page may not call {method.name}{hint}")

    def _large_slot(self, client: str) -> AbstractAsyncContextManager[None]:
        return self._shares.large.slot(client)


def _params_of(body: bytes) -> dict[str, Any]:
    """Return the parameters in a body. Raises RpcError."""
    if len(body) > _MOST_BODY:
        raise RpcError("too_large", f"the parameters have {len(body):,} bytes; at most {_MOST_BODY:,} are allowed")
    try:
        params = msgspec.json.decode(body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise RpcError("bad_params", f"the body is not JSON: {fault}") from None
    if not isinstance(params, dict):
        raise RpcError("bad_params", "the body must be a JSON object with the parameters")
    return params


def _succeeded(result: Any, headers: Mapping[str, str]) -> HttpResponse:
    if isinstance(result, Large):
        result = {**result.head, result.name: list(result.encoded)}
    return json_response({"result": plain(result)}, request_headers=headers)


def _failed(code: str, message: str, data: Any = None) -> HttpResponse:
    status = 401 if code == "unauthenticated" else AuditOutcome.of_error(code, "").code
    return json_response({"error": {"code": code, "message": message, "data": plain(data)}}, status)


def _text(status: int, text: str, *headers: tuple[str, str]) -> HttpResponse:
    fields = ("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store"), *headers
    return HttpResponse(status, fields, f"{text}\n".encode())
