"""ApiServer: requests to a real Kubernetes API server: pages of a list, watches, and requests for a single object.

Responses are decoded object by object, and large ones in a thread, because decoding blocks all other threads.

Raises: LiveError and its subclasses NotServed, HistoryLost and RequestFailed; nothing else.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from itertools import count
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit

import attrs
import msgspec
import trio

from kschedd.http.proxies import is_loopback
from kschedd.live.connection import ServerConnection, ServerRequest
from kschedd.live.credentials import SILENCE_S
from kschedd.live.errors import HistoryLost, LiveError, converted, faults_of
from kschedd.live.rate_limit import RateLimit
from kschedd.live.repeating import pause_before_repeat

Raw = dict[str, Any]

PAGE: Final = 500  # objects per page
ANSWER_S: Final = 10.0  # maximum time in seconds from a request for a single object to its response
_WATCH_S: Final = 240  # seconds after which the server ends a watch, and another watch continues
_PAGE_S: Final = 300  # maximum time for reading a page while data keeps arriving
_SMALL: Final = 1 << 16  # maximum size of a body that is decoded without a thread, in bytes
_LONGEST_EVENT: Final = 1 << 24  # bytes
_LONGEST_PAGE: Final = 1 << 28
_LONGEST_RELEASE: Final = 100  # characters
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*").fullmatch
_decode_object: Final = msgspec.json.Decoder(dict[str, Any]).decode
_VERSION: Final = ServerRequest("GET", "version")
EVENTS: Final = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")


@attrs.frozen
class ServedResource:
    """A resource as a server serves it: `apps/v1`, `deployments`."""

    kind: str
    api_version: str
    plural: str

    @property
    def path(self) -> str:
        return self.path_in("")

    def path_in(self, namespace: str) -> str:
        """Return the path of the resource in this namespace ("": in all namespaces, or a cluster-scoped resource)."""
        place = f"namespaces/{_segment(namespace)}/" if namespace else ""
        return f"{'apis' if '/' in self.api_version else 'api'}/{self.api_version}/{place}{self.plural}"

    def path_of(self, namespace: str, name: str, subresource: str = "") -> str:
        """Return the path of one object."""
        path = f"{self.path_in(namespace)}/{_segment(name)}"
        return f"{path}/{subresource}" if subresource else path


def _segment(name: str) -> str:
    """Return the name as a segment of a path."""
    return name if _PLAIN_NAME(name) else quote(name, safe="")


@attrs.frozen(eq=False)
class ServedPage:
    items: Sequence[Raw]
    version: str  # of the whole list
    more: str  # continue token for the next page, or ""


@attrs.frozen(eq=False)
class WatchBatch:
    """Watch events that arrived together; `is_small` is true if their text is short."""

    events: Sequence[Raw] = ()
    is_small: bool = True


@attrs.define(eq=False)
class ApiServer:
    """A client of one API server."""

    _connection: ServerConnection
    release: str = attrs.field(default="", init=False)
    """The version that the server has reported, such as v1.36.2; "" before `read_release`."""

    @classmethod
    async def connect(cls, kubeconfig: str = "", context: str = "") -> "ApiServer":
        """Return a client for a context of a kubeconfig.

        If `context` is "", use the current context of kubectl's kubeconfig. No request is sent to the server yet.
        Raises LiveError if there is no server, or if no credentials can be obtained.
        """
        return cls(await ServerConnection.of(kubeconfig, context))

    @property
    def url(self) -> str:
        return self._connection.url

    @property
    def is_local(self) -> bool:
        """Return whether the API server is on this machine."""
        return is_loopback(urlsplit(self.url).hostname or "")

    @property
    def context(self) -> str:
        """The context of the kubeconfig, or ""."""
        return self._connection.used_context

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._connection.aclose()

    async def read_release(self) -> str:
        """Read the release of the API server."""
        answer = await self.ask(_VERSION)
        self.release = str(answer.get("gitVersion") or "")[:_LONGEST_RELEASE]
        return self.release

    async def page(self, resource: ServedResource, more: str = "") -> ServedPage:
        """Return a page of the list. If the server is too busy and returns Retry-After, the request is sent again."""
        params = {"limit": str(PAGE)} | ({"continue": more} if more else {})
        request = ServerRequest("GET", resource.path, params)
        for repeats in count():
            try:
                body = await self._page_body(request)
                break
            except LiveError as failure:
                pause_s = None if failure.retry_after_s is None else pause_before_repeat(failure, "GET", repeats)
                if pause_s is None:
                    raise
            await trio.sleep(pause_s)
        with faults_of(self.url, f"what it lists as {resource.plural} cannot be used: "):
            if len(body) <= _SMALL:
                return _page(body, resource)
            return await trio.to_thread.run_sync(_page, body, resource)

    async def _page_body(self, request: ServerRequest) -> bytearray:
        body, until = bytearray(), trio.current_time() + _PAGE_S
        async with self._connection.request(request) as pieces:
            while (piece := await _next(pieces, min(until, trio.current_time() + SILENCE_S))) is not None:
                body += piece
                if len(body) > _LONGEST_PAGE:
                    raise ValueError(f"the page is longer than {_LONGEST_PAGE} bytes")
        return body

    async def ask(self, request: ServerRequest, pace: RateLimit | None = None) -> Raw:
        """Send a request for a single object, within the rate limit, and return the object in the response.

        The request is sent again after a failure if repetition is safe (repeating.py).
        """
        body = await self.send(request, pace)
        try:
            return _decode_object(body)
        except Exception as fault:
            raise converted(fault, self.url, f"unusable response to {request}: ") from None

    async def send(self, request: ServerRequest, pace: RateLimit | None = None) -> bytes | bytearray:
        """Send a request as `ask` does, and return the body of the response."""
        repeats = 0
        while True:
            if pace is not None and pace.is_limited:
                await pace.wait()
            try:
                with trio.move_on_after(ANSWER_S):
                    return await self._connection.answer(request, _LONGEST_EVENT)
                raise LiveError(self.url, f"{request}: no answer within {ANSWER_S:.0f} s")
            except LiveError as failure:
                pause_s = pause_before_repeat(failure, request.method, repeats)
                if pause_s is None:
                    raise
            repeats += 1
            await trio.sleep(pause_s)

    async def watch(self, resource: ServedResource, since: str) -> AsyncGenerator[WatchBatch, None]:
        """Yield batches of the events after this version until the server ends the watch.

        The first batch is yielded when the server responds, and may be empty.
        """
        params = {
            "watch": "1",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_S),
        }
        until = trio.current_time() + _WATCH_S + SILENCE_S
        rest = bytearray()
        async with self._connection.request(ServerRequest("GET", resource.path, params)) as pieces:
            yield WatchBatch()
            while (piece := await _next(pieces, until)) is not None:
                whole, ended, begun = piece.rpartition(b"\n")
                if not ended:
                    rest += piece
                    if len(rest) > _LONGEST_EVENT:
                        raise ValueError(f"an event of {resource.plural} is longer than {_LONGEST_EVENT} bytes")
                    continue
                rest += whole
                text, rest = bytes(rest), bytearray(begun)
                with faults_of(self.url, f"its data about {resource.plural} cannot be used: "):
                    if len(text) <= _SMALL:
                        events = _events(text, resource, self.url)
                    else:
                        events = await trio.to_thread.run_sync(_events, text, resource, self.url)
                if events:
                    yield WatchBatch(events, len(text) <= _SMALL)


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion")
    more: str | None = msgspec.field(name="continue", default=None)


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


async def _next(pieces: AsyncIterator[bytes], until: float) -> bytes | None:
    with trio.fail_at(until):
        return await anext(pieces, None)


def _page(body: bytearray, resource: ServedResource) -> ServedPage:
    listed = msgspec.json.decode(body, type=_List)
    if not listed.metadata.resource_version:
        raise ValueError("the list has no resourceVersion")
    items = [_whole(msgspec.json.decode(item), resource) for item in listed.items or ()]
    return ServedPage(items, listed.metadata.resource_version, listed.metadata.more or "")


def _events(text: bytes, resource: ServedResource, server: str) -> list[Raw]:
    return [_event(msgspec.json.decode(line), resource, server) for line in text.split(b"\n") if line.strip()]


def _event(event: Any, resource: ServedResource, server: str) -> Raw:
    if not isinstance(event, dict):
        raise ValueError("an event is not an object")
    obj = event.get("object")
    if event.get("type") == "ERROR":
        status = obj if isinstance(obj, dict) else {}
        failure = HistoryLost if status.get("code") == 410 else LiveError
        raise failure(server, str(status.get("message") or "the watch has failed"))
    if event.get("type") not in EVENTS:
        raise ValueError(f"unknown event type {str(event.get('type'))[:60]!r}")
    _whole(obj, resource)
    return event


def _whole(raw: Any, resource: ServedResource) -> Raw:
    """Return the object with its kind and apiVersion, which items of a list lack."""
    if not isinstance(raw, dict) or not isinstance(raw.get("metadata"), dict):
        raise ValueError("there is no metadata")
    raw["kind"], raw["apiVersion"] = resource.kind, resource.api_version
    return raw
