"""ApiServer: what is asked of a real Kubernetes API server: pages of a list, and watches.

kr8s finds the server and the credentials as kubectl does (kubeconfig, exec plugins, the service account within a
cluster), and renews them. Large answers are decoded in a thread.
Raises: LiveError, and of it NotServed and HistoryLost; nothing else.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import attrs
import msgspec
import trio

from kschedd.errors import KscheddError

Raw = dict[str, Any]

PAGE: Final = 500  # objects in one answer
_WATCH_S: Final = 240  # after which the server ends a watch, and another one goes on from there
_SILENCE_S: Final = 30  # beyond which a server that should have answered is not waited for
_SMALL: Final = 1 << 16  # bytes that are decoded at once: a thread costs more
_LONGEST_EVENT: Final = 1 << 24  # bytes
EVENTS: Final = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
_ABSENT: Final = (403, 404, 405)


@attrs.define(eq=False)
class LiveError(KscheddError):
    """The server cannot be reached, or answers with what cannot be used."""

    server: str
    why: str

    def __str__(self) -> str:
        return f"{self.server}: {self.why}"


class NotServed(LiveError):
    """The server does not have this resource, or does not let us see it."""


class HistoryLost(LiveError):
    """The server no longer knows what happened since that version: all is to be listed again."""


@attrs.frozen
class ServedResource:
    """A kind as a server serves it: `apps/v1`, `deployments`."""

    kind: str
    api_version: str
    plural: str


@attrs.frozen(eq=False)
class ServedPage:
    items: Sequence[Raw]
    version: str  # of the whole list
    more: str  # what the next page is asked for with; "": this is the last


@attrs.define(eq=False)
class ApiServer:
    """See the module. `url` names it in messages, `context` is the kubeconfig's."""

    url: str
    context: str
    _api: Any

    @classmethod
    async def connect(cls, kubeconfig: str = "", context: str = "") -> "ApiServer":
        """The server of this context ("": the current one) of a kubeconfig ("": as kubectl finds it)."""
        try:
            import kr8s.asyncio
        except ImportError:
            raise LiveError("--mirror", "kr8s is not installed: pip install 'kschedd[live]'") from None
        where = kubeconfig or "the kubeconfig"
        if kubeconfig and not await (await trio.Path(kubeconfig).expanduser()).is_file():
            raise LiveError(kubeconfig, "cannot be read: there is no such file")
        try:
            with trio.fail_after(_SILENCE_S):
                api = await kr8s.asyncio.api(kubeconfig=kubeconfig or None, context=context or None)
        except trio.TooSlowError:
            raise LiveError(where, f"no answer from its server within {_SILENCE_S} s") from None
        except (AttributeError, IndexError, KeyError, TypeError) as fault:
            raise LiveError(where, f"is no kubeconfig that can be used ({type(fault).__name__}: {fault})") from None
        except Exception as fault:  # of the file, a plugin for credentials, or the server
            raise LiveError(where, _said(fault)) from None
        return cls(str(api.auth.server), str(api.auth.active_context), api)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        if (session := getattr(self._api, "_session", None)) is not None:  # kr8s has no verb for it
            await session.aclose()

    async def page(self, resource: ServedResource, more: str = "") -> ServedPage:
        params = {"limit": str(PAGE)} | ({"continue": more} if more else {})
        with self._faults():
            with trio.fail_after(_SILENCE_S):
                async with self._request(resource, params) as response:
                    body = response.content
            listed = await _decoded(body)
            meta = listed.get("metadata") or {}
            items = [self._whole(item, resource) for item in listed.get("items") or ()]
            return ServedPage(items, str(meta["resourceVersion"]), str(meta.get("continue") or ""))

    async def watch(self, resource: ServedResource, since: str) -> AsyncGenerator[list[Raw], None]:
        """What happened after that version, some events at a time, until the server ends it: none where there was
        nothing. The first answer is given at once, and may be empty."""
        params = {
            "watch": "1",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_S),
        }
        until = trio.current_time() + _WATCH_S + _SILENCE_S
        with self._faults():
            async with self._request(resource, params, stream=True) as response, _reading(response) as pieces:
                yield []
                rest = b""
                while True:
                    with trio.fail_at(until):
                        piece = await anext(pieces, None)
                    if piece is None:
                        return
                    *lines, rest = (rest + piece).split(b"\n")
                    if len(rest) > _LONGEST_EVENT:
                        raise ValueError(f"an event of {resource.plural} is longer than {_LONGEST_EVENT} bytes")
                    if events := [self._event(await _decoded(line), resource) for line in lines if line]:
                        yield events

    def _request(self, resource: ServedResource, params: dict[str, str], *, stream: bool = False) -> Any:
        return self._api.call_api(
            "GET", version=resource.api_version, url=resource.plural, params=params, stream=stream
        )

    def _event(self, event: Raw, resource: ServedResource) -> Raw:
        if event.get("type") == "ERROR":
            status = event.get("object") or {}
            failure = HistoryLost if status.get("code") == 410 else LiveError
            raise failure(self.url, str(status.get("message") or "the watch has failed"))
        if event.get("type") not in EVENTS:
            raise ValueError(f"there is no event of type {str(event.get('type'))[:60]!r}")
        self._whole(event.get("object"), resource)
        return event

    def _whole(self, raw: Any, resource: ServedResource) -> Raw:
        """An object of a list says neither its kind nor its version."""
        if not isinstance(raw, dict) or not isinstance(raw.get("metadata"), dict):
            raise ValueError(f"what it has of {resource.plural} is no object")
        raw.setdefault("kind", resource.kind)
        raw.setdefault("apiVersion", resource.api_version)
        return raw

    def _faults(self) -> "_Faults":
        return _Faults(self.url)


@attrs.frozen
class _Faults:
    """What goes wrong inside comes out as a LiveError."""

    server: str

    def __enter__(self) -> None: ...

    def __exit__(self, sort: Any, fault: BaseException | None, trace: Any) -> None:
        if fault is None or isinstance(fault, LiveError) or not isinstance(fault, Exception):
            return
        response = getattr(fault, "response", None)
        code = getattr(response, "status_code", None)
        if code == 410:
            raise HistoryLost(self.server, _said(fault)) from None
        if code in _ABSENT:
            raise NotServed(self.server, _said(fault)) from None
        if isinstance(fault, trio.TooSlowError):
            raise LiveError(self.server, f"no answer within {_SILENCE_S} s") from None
        raise LiveError(self.server, _said(fault)) from None


@asynccontextmanager
async def _reading(response: Any) -> AsyncIterator[AsyncIterator[bytes]]:
    """The body as it comes. What is not read to its end is cancelled from within: only so the generators that httpx
    has within one another end as well."""
    pieces = response.aiter_raw()
    try:
        yield pieces
    finally:
        with trio.CancelScope() as cut:
            cut.cancel()
            await anext(pieces, None)


def _said(fault: Exception) -> str:
    return " ".join(str(fault).split()) or type(fault).__name__


async def _decoded(body: bytes) -> Raw:
    decode = msgspec.json.decode
    found = decode(body) if len(body) <= _SMALL else await trio.to_thread.run_sync(decode, body)
    if not isinstance(found, dict):
        raise ValueError("a JSON object is expected")
    return found
