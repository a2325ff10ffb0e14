"""Tests of the server over streams in memory: order, slow and half-open clients, bodies in pieces.

Time is a mock clock.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MemoryReceiveStream, MemorySendStream, memory_stream_one_way_pair

from kschedd.http.protocol import HttpRequest
from kschedd.http.server import (
    ENDS_AT_ONCE,
    LARGE_BODIES,
    Admits,
    Handler,
    HttpLimits,
    HttpResponse,
    HttpServer,
    Peer,
    Send,
)
from kschedd.http.unauthenticated import Unauthenticated

GET = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
ClientStream = trio.StapledStream[MemorySendStream, MemoryReceiveStream]
ServerStream = trio.StapledStream[Any, MemoryReceiveStream]


class MemoryListener(trio.abc.Listener[ServerStream]):
    """A listener for clients in this process."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[ServerStream](10)

    async def connect(self) -> ClientStream:
        there, here = memory_stream_one_way_pair()
        back, answers = memory_stream_one_way_pair()
        await self.take(trio.StapledStream(back, here))
        return trio.StapledStream(there, answers)

    async def take(self, stream: ServerStream) -> None:
        """Connect another client."""
        await self._send.send(stream)

    async def accept(self) -> ServerStream:
        return await self._receive.receive()

    async def aclose(self) -> None:
        self._receive.close()


@attrs.define(eq=False)
class Fixture:
    server: HttpServer
    listener: MemoryListener

    async def connect(self) -> ClientStream:
        return await self.listener.connect()


@asynccontextmanager
async def serving(
    handler: Handler, limits: HttpLimits | None = None, admits: Admits | None = None
) -> AsyncIterator[Fixture]:
    listener = MemoryListener()
    server = HttpServer(handler, limits=limits, admits=admits)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [listener])
        yield Fixture(server, listener)
        nursery.cancel_scope.cancel()


async def answer_until_closed(client: ClientStream) -> bytes:
    found = b""
    while data := await client.receive_some():
        found += data
    return found


async def answer(client: ClientStream, until: bytes) -> bytes:
    """Return the received data up to and including these bytes."""
    found = b""
    while until not in found:
        data = await client.receive_some()
        assert data, f"closed after {found!r}"
        found += data
    return found


async def echo(request: HttpRequest, peer: Peer) -> HttpResponse:
    return HttpResponse(200, (), request.target + b" " + request.body)


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    async with serving(echo) as fixture:
        client = await fixture.connect()
        await client.send_all(b"".join(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number for number in range(20)))
        found = b""
        while found.count(b"HTTP/1.1 200") < 20 or not found.endswith(b"/19 "):
            found += await client.receive_some()
        places = [found.index(b"\r\n\r\n/%d " % number) for number in range(20)]
        assert places == sorted(places)


async def test_a_request_in_single_bytes_is_answered() -> None:
    async with serving(echo) as fixture:
        client = await fixture.connect()
        for byte in b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nok":
            await client.send_all(bytes([byte]))
        assert (await answer(client, b"/x ok")).startswith(b"HTTP/1.1 200 OK")


async def test_close_is_kept_to() -> None:
    async with serving(echo) as fixture:
        client = await fixture.connect()
        await client.send_all(b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        await client.send_stream.aclose()
        assert b"Connection: close" in await answer_until_closed(client)


async def test_head_has_the_length_and_no_body() -> None:
    async with serving(echo) as fixture:
        client = await fixture.connect()
        await client.send_all(b"HEAD /abc HTTP/1.1\r\nHost: h\r\n\r\n")
        found = await answer(client, b"\r\n\r\n")
        assert b"Content-Length: 5" in found
        assert found.endswith(b"\r\n\r\n")


async def test_nonsense_is_answered_once_and_closed(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(echo) as fixture:
        client = await fixture.connect()
        await client.send_all(GET + b"nonsense\r\n\r\n" + GET)
        found = await answer_until_closed(client)
        assert found.count(b"HTTP/1.1 200") == 1
        assert found.count(b"HTTP/1.1 400") == 1


async def test_a_request_that_never_ends_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(echo, HttpLimits(request_s=60)) as fixture:
        client = await fixture.connect()
        began = trio.current_time()
        await client.send_all(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nab")
        assert b"HTTP/1.1 408" in await answer_until_closed(client)
        assert trio.current_time() - began == pytest.approx(61, abs=1.1)


async def test_drips_do_not_put_off_the_end(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(echo, HttpLimits(request_s=60)) as fixture, trio.open_nursery() as nursery:
        client = await fixture.connect()

        async def drip() -> None:
            try:
                await client.send_all(b"GET / HTTP/1.1\r\nHost: h\r\n")
                while True:
                    await trio.sleep(5)
                    await client.send_all(b"A: b\r\n")
            except trio.BrokenResourceError:
                pass

        nursery.start_soon(drip)
        assert b"HTTP/1.1 408" in await answer_until_closed(client)
        nursery.cancel_scope.cancel()


async def test_a_connection_that_asks_nothing_is_closed(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(echo, HttpLimits(idle_s=180)) as fixture:
        client = await fixture.connect()
        await client.send_all(GET)
        await answer(client, b"/a ")
        began = trio.current_time()
        assert await answer_until_closed(client) == b""
        assert trio.current_time() - began == pytest.approx(180)


async def test_the_idlest_connection_makes_room(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(echo, HttpLimits(connections=2)) as fixture:
        first = await fixture.connect()
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(1)
        second = await fixture.connect()
        await trio.testing.wait_all_tasks_blocked()
        third = await fixture.connect()
        await third.send_all(GET)
        await answer(third, b"/a ")
        assert await answer_until_closed(first) == b""
        await second.send_all(GET)
        await answer(second, b"/a ")


async def test_without_an_idle_connection_there_is_no_room() -> None:
    async def forever(request: HttpRequest, peer: Peer) -> HttpResponse:
        await trio.sleep_forever()
        raise AssertionError

    async with serving(forever, HttpLimits(connections=1)) as fixture:
        first = await fixture.connect()
        await first.send_all(GET)
        await trio.testing.wait_all_tasks_blocked()
        second = await fixture.connect()
        assert b"HTTP/1.1 503" in await answer_until_closed(second)


def streaming(stream: Callable[[Send], Awaitable[None]]) -> Handler:
    async def handler(request: HttpRequest, peer: Peer) -> HttpResponse:
        return HttpResponse(200, (), stream=stream)

    return handler


async def test_a_body_in_pieces_goes_out_piece_by_piece() -> None:
    go_on = trio.Event()

    async def stream(send: Send) -> None:
        await send(b"one")
        await go_on.wait()
        await send(b"two")

    async with serving(streaming(stream)) as fixture:
        client = await fixture.connect()
        await client.send_all(GET)
        await answer(client, b"3\r\none\r\n")
        go_on.set()
        assert await answer(client, b"0\r\n\r\n") == b"3\r\ntwo\r\n0\r\n\r\n"
        await client.send_all(GET)  # the connection goes on
        await answer(client, b"one")


async def test_who_goes_away_ends_what_is_sent() -> None:
    ended = trio.Event()

    async def stream(send: Send) -> None:
        try:
            await send(b"one")
            await trio.sleep_forever()
        finally:
            ended.set()

    async with serving(streaming(stream)) as fixture:
        client = await fixture.connect()
        await client.send_all(GET)
        await answer(client, b"one")
        await client.aclose()
        with trio.fail_after(90):
            await ended.wait()


async def test_who_goes_away_as_what_is_sent_ends_ends_only_that_connection() -> None:
    ending = trio.Event()

    async def stream(send: Send) -> None:
        await send(b"one")
        await client.receive_stream.aclose()  # so that the last chunk cannot be sent
        ending.set()

    async with serving(streaming(stream)) as fixture:
        client = await fixture.connect()
        await client.send_all(GET)
        with trio.fail_after(90):
            await ending.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert fixture.server.connections == 0
        another = await fixture.connect()
        await another.send_all(b"nonsense\r\n\r\n")
        assert b"HTTP/1.1 400" in await answer(another, b"400")


async def test_who_reads_nothing_is_dropped(autojump_clock: trio.testing.MockClock) -> None:
    """Close a stream that blocks longer than its time limit."""

    async def stuck() -> None:
        await trio.sleep_forever()

    async def stream(send: Send) -> None:
        await send(b"a" * 1000)

    async with serving(streaming(stream), HttpLimits(stall_s=30)) as fixture:
        there, here = memory_stream_one_way_pair()
        back, answers = memory_stream_one_way_pair()
        back.send_all_hook = stuck
        await fixture.listener.take(trio.StapledStream(back, here))
        await there.send_all(GET)
        assert await answers.receive_some() is not None
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(31)
        assert fixture.server.connections == 0


async def test_a_stream_that_fails_is_cut_off_not_ended() -> None:
    async def stream(send: Send) -> None:
        await send(b"one")
        raise RuntimeError("a bug")

    async with serving(streaming(stream)) as fixture:
        client = await fixture.connect()
        await client.send_all(GET)
        await client.send_stream.aclose()
        assert not (await answer_until_closed(client)).endswith(b"0\r\n\r\n")


async def test_a_bug_of_the_handler_is_500_and_the_server_goes_on() -> None:
    async def handler(request: HttpRequest, peer: Peer) -> HttpResponse:
        raise RuntimeError("a bug")

    async with serving(handler) as fixture:
        for _ in range(2):
            client = await fixture.connect()
            await client.send_all(GET)
            assert b"HTTP/1.1 500" in await answer(client, b"traceback")


async def test_shut_down_ends_streams_in_order_and_takes_nothing_new(autojump_clock: trio.testing.MockClock) -> None:
    async def stream(send: Send) -> None:
        await send(b"one")
        await trio.sleep_forever()

    async with serving(streaming(stream)) as fixture:
        client = await fixture.connect()
        await client.send_all(GET)
        await answer(client, b"one")
        fixture.server.shut_down(2)
        assert (await answer_until_closed(client)).endswith(b"0\r\n\r\n")
        with trio.fail_after(90):
            await fixture.server.ended.wait()


@attrs.define(eq=False)
class StuckSendStream(trio.abc.SendStream):
    """A stream that blocks within the first data that contains `at`."""

    at: bytes
    taken: bytearray = attrs.field(factory=bytearray)
    stuck: trio.Event = attrs.field(factory=trio.Event)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        if self.at in bytes(data):
            self.taken += bytes(data[:4])
            self.stuck.set()
            await trio.sleep_forever()
        self.taken += data

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_shut_down_within_a_chunk_sends_nothing_into_it(autojump_clock: trio.testing.MockClock) -> None:
    """Send nothing: a slow client would read an error as part of the chunk."""

    async def stream(send: Send) -> None:
        await send(b"one")
        await send(b"two")

    async with serving(streaming(stream)) as fixture:
        there, here = memory_stream_one_way_pair()
        back = StuckSendStream(b"two")
        await fixture.listener.take(trio.StapledStream(back, here))
        await there.send_all(GET)
        await back.stuck.wait()
        fixture.server.shut_down(2)
        await fixture.server.ended.wait()
        assert back.taken.endswith(b"3\r\none\r\n3\r\nt")


async def test_a_client_that_waits_for_continue_gets_it() -> None:
    async with serving(echo) as fixture:
        client = await fixture.connect()
        await client.send_all(b"POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert await answer(client, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send_all(b"ok")
        await answer(client, b"/x ok")


async def test_large_bodies_are_read_up_to_the_limit() -> None:
    async def measured(request: HttpRequest, peer: Peer) -> HttpResponse:
        return HttpResponse(200, (), str(len(request.body)).encode())

    async with serving(measured) as fixture, trio.open_nursery() as nursery:
        client = await fixture.connect()
        head = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n"
        nursery.start_soon(client.send_all, head + b"a" * 3_000_000)
        await answer(client, b"\r\n\r\n3000000")


async def test_who_goes_away_behind_many_requests_of_its_own_ends_what_is_sent() -> None:
    ended = trio.Event()

    async def endless(send: Send) -> None:
        try:
            await send(b"x")
            await trio.sleep_forever()
        finally:
            ended.set()

    async def handler(request: HttpRequest, peer: Peer) -> HttpResponse:
        return HttpResponse(200, (), stream=endless)

    async with serving(handler) as fixture:
        client = await fixture.connect()
        await client.send_all(GET * 5)
        await answer(client, b"x")
        await client.aclose()
        with trio.fail_after(90):
            await ended.wait()


async def test_who_sends_without_end_while_a_body_is_sent_is_cut_off() -> None:
    async def endless(send: Send) -> None:
        await send(b"x")
        await trio.sleep_forever()

    async def handler(request: HttpRequest, peer: Peer) -> HttpResponse:
        return HttpResponse(200, (), stream=endless)

    async with serving(handler, HttpLimits(most_body=1000)) as fixture:
        client = await fixture.connect()
        await client.send_all(GET)
        await answer(client, b"x")
        cut_off = False
        with trio.fail_after(90):
            while not cut_off:
                try:
                    await client.send_all(GET * 100)
                except trio.BrokenResourceError:
                    cut_off = True


class Ends(trio.abc.Instrument):
    """Largest number of tasks that ended in one iteration of the event loop."""

    def __init__(self) -> None:
        self.most = self._now = 0

    def after_io_wait(self, timeout: float) -> None:
        self._now = 0

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self._now += 1
        self.most = max(self.most, self._now)


async def test_of_many_clients_that_go_at_once_few_connections_end_in_one_iteration(autojump_clock) -> None:
    async def handle(request: HttpRequest, peer: Peer) -> HttpResponse:
        raise AssertionError("nothing is asked")

    async with serving(handle) as served:
        clients = [await served.connect() for _ in range(5 * ENDS_AT_ONCE)]
        await trio.testing.wait_all_tasks_blocked()
        assert served.server.connections == len(clients)
        ends = Ends()
        trio.lowlevel.add_instrument(ends)
        for client in clients:
            client.send_stream.close()
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(ends)
        assert served.server.connections == 0
    assert 0 < ends.most <= ENDS_AT_ONCE


# Clients without credentials.

ASKED = b"GET /a HTTP/1.1\r\nHost: h\r\nAuthorization: good\r\n\r\n"


def is_good(request: HttpRequest, peer: Peer) -> str | None:
    return "good" if request.headers.get("authorization") == "good" else None


async def guarded(request: HttpRequest, peer: Peer) -> HttpResponse:
    return await echo(request, peer) if is_good(request, peer) else HttpResponse(401, (), b"who are you")


def posted(length: int, *fields: bytes) -> bytes:
    lines = [b"POST /x HTTP/1.1", b"Host: h", b"Content-Length: %d" % length, *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n"


@pytest.mark.parametrize(
    "part", [b"", b"x" * 100, b"x" * (80 << 10)], ids=["no-body-yet", "part-of-a-body", "much-of-a-body"]
)
async def test_a_refusal_does_not_wait_for_the_body(autojump_clock: trio.testing.MockClock, part: bytes) -> None:
    async with serving(guarded, admits=is_good) as fixture:
        start = trio.current_time()
        client = await fixture.connect()
        await client.send_all(posted(1 << 20) + part)
        answered = await answer_until_closed(client)
        assert answered.startswith(b"HTTP/1.1 401")
        assert b"Connection: close" in answered
        assert trio.current_time() - start <= 1  # The client may still read data in transit.


async def test_a_refusal_that_is_read_whole_leaves_the_connection_open() -> None:
    async with serving(guarded, admits=is_good) as fixture:
        client = await fixture.connect()
        await client.send_all(posted(2) + b"ok")
        await answer(client, b"who are you")
        await client.send_all(ASKED)
        assert b"/a " in await answer(client, b"/a ")


async def test_who_waits_for_continue_is_admitted_first() -> None:
    async with serving(guarded, admits=is_good) as fixture:
        client = await fixture.connect()
        await client.send_all(posted(2, b"Authorization: good", b"Expect: 100-continue"))
        await answer(client, b"100 Continue")
        await client.send_all(b"ok")
        assert b"/x ok" in await answer(client, b"/x ok")
        refused = await fixture.connect()
        await refused.send_all(posted(2, b"Expect: 100-continue"))
        assert (await answer_until_closed(refused)).startswith(b"HTTP/1.1 401")


async def test_half_bodies_of_unauthenticated_clients_hold_no_place_for_large_ones(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving(guarded, HttpLimits(most_body=1 << 20), admits=is_good) as fixture:
        for _ in range(2 * LARGE_BODIES):
            unknown = await fixture.connect()
            await unknown.send_all(posted(1 << 20) + b"x" * (300 << 10))
        client = await fixture.connect()
        size = 300 << 10  # more than the server reads before it waits for a free slot
        await client.send_all(posted(size, b"Authorization: good") + b"x" * size)
        assert (await answer(client, b"\r\n\r\n")).startswith(b"HTTP/1.1 200")


def user_named(request: HttpRequest, peer: Peer) -> str | None:
    """Return the last word of the Authorization header as the user; one user may have several tokens."""
    return request.headers.get("authorization", "").rpartition(" ")[2] or None


async def test_half_bodies_of_one_user_keep_out_no_other(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(echo, HttpLimits(most_body=1 << 20), admits=user_named) as fixture:
        for number in range(2 * LARGE_BODIES):
            greedy = await fixture.connect()
            await greedy.send_all(posted(1 << 20, b"Authorization: %d greedy" % number) + b"x" * (80 << 10))
        await trio.testing.wait_all_tasks_blocked()
        client = await fixture.connect()
        size = 300 << 10  # more than the server reads before it waits for a free slot
        await client.send_all(posted(size, b"Authorization: good") + b"x" * size)
        assert (await answer(client, b"\r\n\r\n")).startswith(b"HTTP/1.1 200")


async def test_who_states_many_names_without_credentials_is_one_address(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(echo, HttpLimits(most_body=1 << 20)) as fixture:
        for number in range(LARGE_BODIES):
            client = await fixture.connect()
            await client.send_all(posted(1 << 20, b"Authorization: %d" % number) + b"x" * (80 << 10))
        await trio.testing.wait_all_tasks_blocked()
        one_more = await fixture.connect()
        await one_more.send_all(posted(1 << 20, b"Authorization: another") + b"x" * (80 << 10))
        assert (await answer(one_more, b"\r\n\r\n")).startswith(b"HTTP/1.1 503")


async def test_a_place_for_a_large_body_is_held_for_thirty_seconds(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(echo, HttpLimits(most_body=1 << 20)) as fixture:
        client = await fixture.connect()
        start = trio.current_time()
        await client.send_all(posted(1 << 20) + b"x" * (80 << 10))
        assert (await answer(client, b"\r\n\r\n")).startswith(b"HTTP/1.1 408")
        assert trio.current_time() - start == 30


async def test_unauthenticated_clients_take_the_places_of_unauthenticated_clients_only(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving(guarded, HttpLimits(connections=20, unauthenticated=4), admits=is_good) as fixture:
        known = []
        for _ in range(10):
            known.append(await fixture.connect())
            await known[-1].send_all(ASKED)
            await answer(known[-1], b"/a ")
        unauthenticated = [await fixture.connect() for _ in range(200)]
        for unknown in unauthenticated[-4:]:
            await unknown.send_all(b"G")
        await trio.testing.wait_all_tasks_blocked()
        assert fixture.server.connections == 14
        newcomer = await fixture.connect()
        await newcomer.send_all(ASKED)
        await answer(newcomer, b"/a ")
        for client in known:
            await client.send_all(ASKED)
            await answer(client, b"/a ")


async def test_an_unauthenticated_client_has_ten_seconds(autojump_clock: trio.testing.MockClock) -> None:
    async with serving(guarded, admits=is_good) as fixture:
        client, known = await fixture.connect(), await fixture.connect()
        await known.send_all(ASKED)
        await answer(known, b"/a ")
        start = trio.current_time()
        await client.send_all(b"G")
        assert await answer_until_closed(client) == b""
        assert trio.current_time() - start == 10
        await known.send_all(ASKED)
        await answer(known, b"/a ")


def test_the_address_with_most_unauthenticated_loses_its_oldest() -> None:
    unauthenticated: Unauthenticated[str] = Unauthenticated(3)
    assert [unauthenticated.add(*each) for each in (("a1", "a"), ("b1", "b"), ("b2", "b"))] == [None] * 3
    assert unauthenticated.add("c1", "c") == "b1"
    assert unauthenticated.add("c2", "c") == "c1"
    unauthenticated.discard("a1")
    assert unauthenticated.add("a2", "a") is None
    assert len(unauthenticated) == 3
