"""ApiServer: requests to a real Kubernetes API server: pages of a list, watches, and requests for a single object.

Responses are decoded object by object, and large ones in a thread, because decoding blocks all other threads.

Raises: LiveError and its subclasses NotServed, HistoryLost and RequestFailed; nothing else.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Hashable, Sequence
from http import HTTPStatus
from itertools import count
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit

import attrs
import msgspec
import trio

from kschedd.dumps.object_texts import ObjectTexts
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
_MOST_TEMPLATES: Final = 1 << 12
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
    """A page of a list. `likenesses` contains one entry for each item (`ObjectTexts`)."""

    items: Sequence[Raw]
    version: str  # of the whole list
    more: str  # continue token for the next page, or ""
    likenesses: Sequence[Hashable] = ()


@attrs.frozen(eq=False)
class WatchBatch:
    """Watch events that arrived together, with the likeness of each object; `is_small` is true if the text is short."""

    events: Sequence[Raw] = ()
    likenesses: Sequence[Hashable] = ()
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
        rest, objects = bytearray(), _Objects(resource)
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
                        batch = _batch(text, objects, self.url)
                    else:
                        batch = await trio.to_thread.run_sync(_batch, text, objects, self.url)
                if batch.events:
                    yield batch


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
    objects, items, likenesses = _Objects(resource), [], []
    for text in listed.items or ():
        item, likeness = objects.read(text)
        items.append(item)
        likenesses.append(likeness)
    return ServedPage(items, listed.metadata.resource_version, listed.metadata.more or "", likenesses)


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Objects:
    """The decoder of the objects of one resource, which adds the kind and apiVersion that items of a list lack.

    Pods are decoded by templates (`ObjectTexts`), which takes half the time, and a fifth with the validation.
    """

    def __init__(self, resource: ServedResource) -> None:
        self._resource = resource
        self._is_of_pods = (resource.kind, resource.api_version) == ("Pod", "v1")
        self._texts = ObjectTexts(self._is_of_pods)

    def read(self, text: msgspec.Raw) -> tuple[Raw, Hashable]:
        """Return the object and its likeness."""
        raw, likeness = self._texts.read(memoryview(text)) if self._is_of_pods else (msgspec.json.decode(text), None)
        if not isinstance(raw, dict) or not isinstance(raw.get("metadata"), dict):
            raise ValueError("there is no metadata")
        if self._texts.templates > _MOST_TEMPLATES:
            self._texts = ObjectTexts(self._is_of_pods)
        raw["kind"], raw["apiVersion"] = self._resource.kind, self._resource.api_version
        return raw, likeness


def _batch(text: bytes, objects: _Objects, server: str) -> WatchBatch:
    events: list[Raw] = []
    likenesses: list[Hashable] = []
    for line in text.split(b"\n"):
        if line.strip():
            event = _decode_event(line)
            if event.type == "ERROR":
                status = msgspec.json.decode(event.object, type=_Status)
                raise (HistoryLost if status.code == HTTPStatus.GONE else LiveError)(
                    server, status.message or "the watch has failed"
                )
            if event.type not in EVENTS:
                raise ValueError(f"unknown event type {event.type[:60]!r}")
            obj, likeness = objects.read(event.object)
            events.append({"type": event.type, "object": obj})
            likenesses.append(likeness)
    return WatchBatch(events, likenesses, len(text) <= _SMALL)


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


_decode_event: Final = msgspec.json.Decoder(_Event).decode
