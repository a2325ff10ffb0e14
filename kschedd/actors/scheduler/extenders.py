"""ExtenderClients: calls extenders for the scheduling actor, concurrently with other tasks.

Owns: an HTTP client for each extender that was called, with its idle connections. Ends: with `close`. Fails: a failure
is logged and returned as an ExtenderFailure.

Bodies are encoded and parsed in threads, because thousands of nodes take long. The JSON of each node is cached. Clients
are created in threads, because loading httpx and certificates takes 0.2 s.
"""

from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, Any

import attrs
import trio

from kschedd.config.model import Extender
from kschedd.extenders.calls import ExtenderCall, ExtenderFailure
from kschedd.framework.costs import CallCosts
from kschedd.lazy_log import LazyLogger

if TYPE_CHECKING:
    from httpx import AsyncClient

log = LazyLogger("kschedd.extenders")


@attrs.define(eq=False)
class ExtenderClients:
    costs: CallCosts = attrs.field(factory=CallCosts)
    _clients: "dict[Extender, AsyncClient]" = attrs.field(factory=dict)
    _http: ModuleType | None = None

    async def ask(self, calls: Sequence[ExtenderCall]) -> list[Any]:
        """Make all these calls concurrently, and return their answers in order."""
        answers: list[Any] = [None] * len(calls)

        async def ask(place: int, call: ExtenderCall) -> None:
            answers[place] = await self.answer(call)

        async with trio.open_nursery() as nursery:
            for place, call in enumerate(calls):
                nursery.start_soon(ask, place, call)
        return answers

    async def answer(self, call: ExtenderCall) -> Any:
        """Return the extender's answer, or an ExtenderFailure."""
        started = perf_counter()
        received = await self._answer(call)
        self._note(call, received, perf_counter() - started)
        if isinstance(received, ExtenderFailure):
            skipped = call.extender.ignorable or call.action == call.extender.prioritize_verb
            log.warning("extender_failed", url=call.url, pod=call.pod, why=received.why, skipped=skipped)
        return received

    def _note(self, call: ExtenderCall, answer: Any, took_s: float) -> None:
        name, failed = call.extender.url_prefix, isinstance(answer, ExtenderFailure)
        if failed and took_s >= call.extender.http_timeout_s:
            self.costs.timed_out(name, call.action)
        else:
            self.costs.returned(name, call.action, took_s, failed=failed)

    async def _answer(self, call: ExtenderCall) -> Any:
        if self._http is None:
            self._http = await trio.to_thread.run_sync(_load_http)
        http = self._http
        reading = False
        try:
            client = self._clients.get(call.extender)
            if client is None:
                client = await self._new_client(http, call.extender)
            request = http.request(client, call, await trio.to_thread.run_sync(call.write))
            body = http.AnswerBody()
            with trio.move_on_after(call.extender.http_timeout_s) as limit:
                response = await client.send(request, stream=True)
                async with aclosing(response):
                    reading = True
                    if response.status_code == 200:
                        await _read_body(response, body, limit)
            if body.too_long:
                return http.too_long(call)
            if not limit.cancelled_caught:
                read = partial(call.read, response.status_code)
                if body.size <= http.SMALL_BYTES:  # a thread would cost more
                    return read(body.whole())
                return await trio.to_thread.run_sync(lambda: read(body.whole()))
        except Exception as fault:  # the extender's answer may make httpx raise any exception
            return http.failure(call, fault, reading=reading)
        return ExtenderFailure(http.LATE_BODY) if reading else call.failed(http.LATE)

    async def _new_client(self, http: ModuleType, extender: Extender) -> Any:
        made = await trio.to_thread.run_sync(http.async_client, extender)
        return self._clients.setdefault(extender, made)  # another call may have created the client meanwhile

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()


async def _read_body(response: Any, body: Any, limit: trio.CancelScope) -> None:
    """Read an httpx.Response into an AnswerBody. If the body is too long, the cancel scope is cancelled."""
    async for part in response.aiter_raw():
        body.add(part)
        if body.too_long:
            limit.cancel()  # ends the read from the connection


def _load_http() -> ModuleType:
    from kschedd.extenders import http  # httpx is slow to import, and most configurations have no extenders

    return http
