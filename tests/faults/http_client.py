"""A client of the REST API of Kubernetes that takes the calls of kschedd.rpc: the same writers and watchers use both.

One connection, one request at a time. A Status becomes an RpcError with the code that kschedd.rpc has for it; an answer
is given in the form of kschedd.rpc's. What the REST API does not say (whether a 503 is the journal's) is told from its
message, as a reader of it would.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import trio

from kschedd.http.protocol import (
    BodyPart,
    ResponseEnd,
    ResponseEvent,
    ResponseHead,
    ResponseReader,
    encode_fields,
    encode_request,
)
from kschedd.rpc.errors import ConnectionLostError
from kschedd.service.errors import RpcError

_HEADERS: Final = (("host", "localhost"), ("accept", "application/json"))
_FIELD_MANAGER: Final = "fieldManager=simulation"
_CODES: Final = {"NotFound": "not_found", "AlreadyExists": "already_exists", "Conflict": "conflict"}
_OF_JOURNAL: Final = ("/state/journal.db", "journal:")


def path_of(kind: str, name: str = "") -> str:
    plural = f"{kind.lower()}s"
    where = f"/api/v1/{plural}" if kind == "Node" else f"/api/v1/namespaces/default/{plural}"
    return f"{where}/{name}" if name else where


def refused(status: Mapping[str, Any]) -> RpcError:
    """Return a Status as the error that kschedd.rpc raises."""
    reason, message = status.get("reason", ""), status.get("message", "")
    if status["code"] == 410:
        code = "gone"
    elif status["code"] == 503:
        code = "journal" if message.startswith(_OF_JOURNAL) else "shutting_down"
    else:
        code = _CODES.get(reason, "internal" if status["code"] >= 500 else "invalid")
    return RpcError(code, message)


@attrs.define(eq=False)
class HttpSubscription:
    """A watch: its items as those of `objects.watch`."""

    result: Mapping[str, Any]
    _client: "HttpClient"
    _text: bytes = b""
    _items: list[Any] = attrs.field(factory=list)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while not self._items:
            for event in await self._client.receive():
                if isinstance(event, BodyPart):
                    *whole, self._text = (self._text + event.data).split(b"\n")
                    self._items += map(json.loads, whole)
                elif isinstance(event, ResponseEnd):
                    raise StopAsyncIteration
        item = self._items.pop(0)
        if item["type"] == "ERROR":
            raise refused(item["object"])
        return {"type": item["type"], "object": item["object"]}


@attrs.define(eq=False)
class HttpClient:
    _stream: trio.abc.Stream
    _reader: ResponseReader = attrs.field(factory=ResponseReader)
    _waiting: list[ResponseEvent] = attrs.field(factory=list)  # of what was received, not yet taken

    async def call(self, method: str, **params: Any) -> Any:
        """Perform one of the kschedd.rpc calls that the simulation makes; raise RpcError or ConnectionLostError."""
        manifest = params.get("manifest") or (params.get("manifests") or [{}])[0]
        kind = params.get("kind") or manifest["kind"]
        path = path_of(kind, params.get("name") or manifest.get("metadata", {}).get("name", ""))
        match method:
            case "objects.list":
                found = await self._ask("GET", path_of(kind))
                items = [{**item, "kind": kind} for item in found["items"]]
                return {"items": items, "resource_version": int(found["metadata"]["resourceVersion"])}
            case "objects.create":
                answer = await self._ask("POST", path_of(kind), manifest)
            case "objects.replace":
                answer = await self._ask("PUT", path, manifest)
            case "objects.get":
                answer = await self._ask("GET", path)
            case "objects.patch":
                answer = await self._ask("PATCH", path, params["patch"], "application/merge-patch+json")
            case "objects.delete":
                seconds = params.get("grace_period_s")
                options = {} if seconds is None else {"gracePeriodSeconds": seconds}
                answer = await self._ask("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})
            case "objects.apply":
                query = f"{_FIELD_MANAGER}&force=true"
                answer = await self._ask("PATCH", f"{path}?{query}", manifest, "application/apply-patch+yaml")
                return {"results": [{"object": answer}]}
            case _:
                raise AssertionError(f"{method} has no request here")
        return {"object": answer}

    @asynccontextmanager
    async def subscribe(
        self, method: str, *, kind: str, since: int | None, buffer: int
    ) -> AsyncIterator[HttpSubscription]:
        """Yield a watch that starts after `since`, or after a list if `since` is None.

        Raises RpcError with the code `gone` if that version is no longer kept.
        """
        assert method == "objects.watch"
        if since is None:
            since = (await self.call("objects.list", kind=kind))["resource_version"]
        await self._send("GET", f"{path_of(kind)}?watch=true&resourceVersion={since}")
        head = await self._head()
        if head.status != 200:
            raise refused(json.loads(await self._body()))
        yield HttpSubscription({"resource_version": since}, self)

    async def _ask(self, method: str, target: str, body: Any = None, media_type: str = "application/json") -> Any:
        await self._send(method, target, body, media_type)
        head = await self._head()
        answer = json.loads(await self._body())
        if head.status >= 400:
            raise refused(answer)
        return answer

    async def _send(self, method: str, target: str, body: Any = None, media_type: str = "application/json") -> None:
        data = b"" if body is None else json.dumps(body).encode()
        headers = (*_HEADERS, ("content-type", media_type)) if data else _HEADERS
        try:
            await self._stream.send_all(encode_request(method, target, encode_fields(headers), data))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as lost:
            raise ConnectionLostError("the simulated daemon", "it is gone") from lost

    async def _head(self) -> ResponseHead:
        while not self._waiting:
            self._waiting += await self.receive()
        head = self._waiting.pop(0)
        assert isinstance(head, ResponseHead)
        return head

    async def _body(self) -> bytes:
        parts: list[bytes] = []
        while True:
            while self._waiting:
                event = self._waiting.pop(0)
                if isinstance(event, ResponseEnd):
                    return b"".join(parts)
                assert isinstance(event, BodyPart)
                parts.append(event.data)
            self._waiting += await self.receive()

    async def receive(self) -> Sequence[ResponseEvent]:
        """Return the waiting events, or else those that the next bytes complete; raise ConnectionLostError."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            return waiting
        try:
            data = await self._stream.receive_some()
        except (trio.BrokenResourceError, trio.ClosedResourceError) as lost:
            raise ConnectionLostError("the simulated daemon", "it is gone") from lost
        if not data:
            raise ConnectionLostError("the simulated daemon", "it has closed")
        return self._reader.feed(bytes(data))
