"""Tests that the bytes waiting for each client and for all clients are counted, and large messages sent in slices."""

from collections.abc import Iterator

import attrs
import trio
import trio.testing

from kschedd.rpc.sessions.sending import Outbox, Pieces, Total
from kschedd.service.turns import Turns


def outbox(total: Total, dropped: list[str], name: str = "a", most: int = 100) -> Outbox:
    return Outbox(name, most, total, Turns(), lambda: dropped.append(name))


async def test_who_has_more_for_a_client_than_it_may_have_waits_for_room(nursery: trio.Nursery) -> None:
    total = Total()
    box = outbox(total, [])
    box.put(b"x" * 120)
    assert (box.full, total.held) == (True, 120)
    room = trio.Event()

    async def wait() -> None:
        await box.room()
        room.set()

    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    assert not room.is_set()
    here, there = trio.testing.memory_stream_pair()
    nursery.start_soon(box.pump, here, 30.0)
    assert await there.receive_some(1000) == b"x" * 120
    await room.wait()
    assert (box.held, total.held) == (0, 0)


async def test_when_all_hold_too_much_the_largest_makes_room() -> None:
    dropped: list[str] = []
    total = Total(most=200)
    small, large = outbox(total, dropped, "small"), outbox(total, dropped, "large")
    small.put(b"x" * 50)
    large.put(b"x" * 140)
    assert dropped == []
    small.put(b"x" * 20)
    assert dropped == ["large"]
    assert total.held == 70
    large.end()
    small.end()
    assert total.held == 0


async def test_pieces_are_made_only_as_they_are_taken(nursery: trio.Nursery) -> None:
    made: list[int] = []

    def pieces() -> Iterator[bytes]:
        for number in range(20):
            made.append(number)
            yield bytes([number]) * (256 << 10)

    box = outbox(Total(), [])
    box.put(Pieces(pieces(), 10))
    assert box.held == 10
    here, there = trio.testing.memory_stream_pair()

    async def slowly() -> None:
        await trio.sleep_forever()

    here.send_stream.send_all_hook = slowly
    nursery.start_soon(box.pump, here, 30.0)
    await trio.testing.wait_all_tasks_blocked()
    assert made == [0]
    here.send_stream.send_all_hook = None
    nursery.cancel_scope.cancel()
    del there


async def test_all_that_was_put_is_sent_after_it_is_closed(nursery: trio.Nursery) -> None:
    box = outbox(Total(), [])
    box.put(b"one")
    box.put(Pieces(iter([b"two", b"three"]), 10))
    box.put(b"four")
    box.close()
    here, there = trio.testing.memory_stream_pair()
    await box.pump(here, 30.0)
    assert await there.receive_some(100) == b"onetwothreefour"


@attrs.define(eq=False)
class Narrow:
    """A socket that accepts a fixed number of bytes until they are read."""

    room: int
    taken: bytes = b""

    def write(self, data: bytes) -> int:
        count = min(self.room, len(data))
        self.room -= count
        self.taken += data[:count]
        return count


async def test_a_response_goes_out_at_once_while_nothing_waits_before_it(nursery: trio.Nursery) -> None:
    socket = Narrow(room=10)
    box = Outbox("a", 1000, Total(), Turns(), lambda: None, socket.write)
    here, there = trio.testing.memory_stream_pair()
    box.answer(b"early ")  # nobody sends yet
    nursery.start_soon(box.pump, here, 30.0)
    assert await there.receive_some(1000) == b"early "
    await trio.testing.wait_all_tasks_blocked()
    box.answer(b"at once ")
    assert (socket.taken, box.held) == (b"at once ", 0)
    box.answer(b"in part ")
    box.answer(b"after it ")
    assert (socket.taken, box.held) == (b"at once in", 6 + 9)
    box.make_room()  # a partly sent message is not dropped
    assert await there.receive_some(1000) == b" part "
    box.close()
