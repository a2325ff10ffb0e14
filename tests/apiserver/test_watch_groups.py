"""Tests that equal watches share the bytes of each event, and that each client receives the same as without sharing."""

import json
import socket

import pytest
import trio
import trio.testing

from kschedd.apiserver import watch_groups
from kschedd.apiserver.watch_groups import Member
from kschedd.http.body_sender import BodySender
from kschedd.http.protocol import HttpRequest, chunk
from kschedd.http.server import HttpResponse, HttpServer, Peer, Send
from tests.apiserver.asking import PODS, TABLE, Asker, Watching, asking, pod


async def names(watching: Watching, count: int) -> list[str]:
    return [(await watching.event())["object"]["metadata"]["name"] for _ in range(count)]


async def joined(api: Asker, members: int) -> None:
    """Wait until this number of watches are in groups."""
    await trio.testing.wait_all_tasks_blocked()
    groups = api.face.services.groups
    assert sum(groups.sizes()) == members


async def test_equal_watches_are_one_group_and_each_gets_everything() -> None:
    async with asking() as api:
        watches = [await api.watch(f"{PODS}?watch=true&labelSelector=a%3Db") for _ in range(5)]
        other = await api.watch(f"{PODS}?watch=true")
        await joined(api, 6)
        assert sorted(api.face.services.groups.sizes()) == [1, 5]
        await api.create(PODS, pod("one", labels={"a": "b"}))
        await api.create(PODS, pod("two"))
        await api.create(PODS, pod("three", labels={"a": "b"}))
        for each in watches:
            assert await names(each, 2) == ["one", "three"]
        assert await names(other, 3) == ["one", "two", "three"]


async def test_one_that_comes_later_gets_what_is_there_and_then_what_all_get() -> None:
    async with asking() as api:
        first = await api.watch(f"{PODS}?watch=true")
        await api.create(PODS, pod("one"))
        later = await api.watch(f"{PODS}?watch=true")
        await api.create(PODS, pod("two"))
        assert await names(first, 2) == await names(later, 2) == ["one", "two"]
        await joined(api, 2)


async def test_a_group_goes_on_without_the_one_that_founded_it(autojump_clock: trio.testing.MockClock) -> None:
    async with asking() as api:
        founder = await api.watch(f"{PODS}?watch=true&timeoutSeconds=1")
        second = await api.watch(f"{PODS}?watch=true")
        await joined(api, 2)
        with trio.fail_after(60):
            await founder.ended.wait()
        await api.create(PODS, pod("one"))
        assert await names(second, 1) == ["one"]
        assert await founder.rest() == []


async def test_each_table_begins_with_its_columns() -> None:
    async with asking() as api:
        watches = [await api.watch(f"{PODS}?watch=true", accept=TABLE) for _ in range(2)]
        for name in ("one", "two"):
            await api.create(PODS, pod(name))
        for each in watches:
            first, second = await each.event(), await each.event()
            assert first["object"]["columnDefinitions"]
            assert not second["object"]["columnDefinitions"]


async def test_an_event_is_encoded_once_for_all_who_watch_it(monkeypatch: pytest.MonkeyPatch) -> None:
    framed = []

    def counting(data: bytes) -> bytes:
        framed.append(data)
        return chunk(data)

    monkeypatch.setattr(watch_groups, "chunk", counting)
    async with asking() as api:
        watches = [await api.watch(f"{PODS}?watch=true") for _ in range(20)]
        await joined(api, 20)
        await api.create(PODS, pod("one"))
        for each in watches:
            await each.event()
    assert len(framed) == 1


async def test_bookmarks_do_not_run_ahead_of_what_was_sent(autojump_clock: trio.testing.MockClock) -> None:
    async with asking() as api:
        watch = await api.watch(f"{PODS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=5")
        made = await api.create(PODS, pod("one"))
        await api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "elsewhere"}})
        added, bookmark = await watch.event(), await watch.event()
    assert (added["type"], bookmark["type"]) == ("ADDED", "BOOKMARK")
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])


async def test_who_takes_nothing_falls_behind_when_its_outbox_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_groups, "MOST_PENDING", 1000)

    async def never(piece: bytes) -> None:
        await trio.sleep_forever()

    member = Member(never, 1)
    for version in range(2, 12):
        member.offer(b"x" * 90, chunk(b"x" * 90), version)
        assert not member.behind
    for version in (12, 13):
        member.offer(b"x" * 200, chunk(b"x" * 200), version)
        assert member.behind
        assert (member.version, member.pending) == (11, 10 * 90)


async def test_who_takes_nothing_keeps_no_bytes_of_its_own() -> None:
    """A partly written chunk belongs to the group; the rest waits in the log."""
    mine, theirs = socket.socketpair()
    mine.setblocking(False)

    class Connection:
        descriptor = mine.fileno()

        async def send(self, data: bytes | memoryview) -> None:
            assert not data or data == b"0\r\n\r\n"

    sender = BodySender(Connection(), b"")
    member, framed = Member(sender, 0), chunk(b"x" * (4 << 20))
    for version in range(1, 100):
        member.offer(b"x" * (4 << 20), framed, version)
    assert (member.behind, member.version, member.pending) == (True, 1, 0)
    assert isinstance(member._rest, memoryview)
    assert member._rest.obj is framed
    mine.close()
    theirs.close()


async def test_who_has_not_read_gets_everything_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_groups, "MOST_PENDING", 1000)
    async with asking() as api:
        taken = bytearray()
        reads = trio.Event()
        reads.set()

        async def send(piece: bytes) -> None:
            await reads.wait()
            taken.extend(piece)

        response = await api.respond("GET", f"{PODS}?watch=true")
        assert response.stream is not None
        api.nursery.start_soon(response.stream, send)
        reader = await api.watch(f"{PODS}?watch=true")
        await joined(api, 2)
        reads = trio.Event()
        wanted = [f"pod-{number}" for number in range(60)]
        for name in wanted:
            await api.create(PODS, pod(name))
        assert await names(reader, 60) == wanted
        assert taken == b""
        reads.set()
        await trio.testing.wait_all_tasks_blocked()
        lines = bytes(taken).splitlines()
        assert [json.loads(line)["object"]["metadata"]["name"] for line in lines] == wanted
        await api.create(PODS, pod("after"))
        await trio.testing.wait_all_tasks_blocked()
        assert json.loads(bytes(taken).splitlines()[-1])["object"]["metadata"]["name"] == "after"


@pytest.mark.parametrize("size", [10, 100_000], ids=["short", "long"])
async def test_a_line_is_the_same_whether_it_is_sent_in_parts_or_not(size: int) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    async with asking() as api:
        made = await api.create(maps, {"metadata": {"name": "a"}, "data": {"x": "y" * size}})
        watching = await api.watch(f"{maps}?watch=true")
        assert await watching.event() == {"type": "ADDED", "object": made}


async def test_a_slow_reader_gets_every_byte_in_its_order() -> None:
    """The watch's own task sends the bytes that the socket does not accept immediately, before any others."""
    lines = [b"%06d " % number * 1000 for number in range(200)]

    async def stream(send: Send) -> None:
        await send(b"")
        assert isinstance(send, BodySender)
        member, number = Member(send, -1), 0
        while number < len(lines):
            member.offer(lines[number], chunk(lines[number]), number)
            number += 1
            if member.behind or number % 50 == 0 or number == len(lines):
                await member.flush()
            if member.behind:  # the watch continues where it fell behind
                number = member.version + 1
                member = Member(send, member.version)

    async def handler(request: HttpRequest, peer: Peer) -> HttpResponse:
        return HttpResponse(200, (), stream=stream)

    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        server = HttpServer(handler)
        await nursery.start(server.serve, [listener])
        found = b""
        async with await trio.open_tcp_stream("127.0.0.1", listener.socket.getsockname()[1]) as client:
            await client.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            with trio.fail_after(60):
                while data := await client.receive_some(20_000):
                    found += data
        nursery.cancel_scope.cancel()
    _, _, body = found.partition(b"\r\n\r\n")
    assert _unchunked(body) == b"".join(lines)


def _unchunked(data: bytes) -> bytes:
    found = []
    while data:
        size, _, data = data.partition(b"\r\n")
        count = int(size, 16)
        found.append(data[:count])
        data = data[count + 2 :]
    return b"".join(found)
