import pytest
import trio

from kschedd.actors.mailbox import ActorRef, Doorbell, Ending, OwnerQuery, batch_from, waiting_in


async def test_rings_before_one_looks_count_once() -> None:
    bell = Doorbell()
    for _ in range(3):
        bell.ring()
    assert await bell.wait()
    with trio.move_on_after(0) as nothing_more:
        await bell.wait()
    assert nothing_more.cancelled_caught


async def test_a_ring_that_was_not_heard_yet_outlives_the_closing() -> None:
    bell = Doorbell()
    bell.ring()
    bell.close()
    bell.ring()
    assert await bell.wait()
    assert not await bell.wait()
    assert bell.closed


async def test_a_batch_is_all_that_waits_up_to_a_limit() -> None:
    send, receive = trio.open_memory_channel[int](10)
    for number in range(5):
        send.send_nowait(number)
    assert await batch_from(receive, 3) == [0, 1, 2]
    assert waiting_in(receive, 10) == [3, 4]
    assert waiting_in(receive, 10) == []
    send.close()
    with pytest.raises(trio.EndOfChannel):
        await batch_from(receive, 3)


async def test_a_question_is_answered_by_the_owner_and_its_failure_is_the_askers(nursery: trio.Nursery) -> None:
    send, receive = trio.open_memory_channel[OwnerQuery[list[int], int]](0)

    async def owner() -> None:
        owned = [3]
        async for question in receive:
            question.evaluate(owned)
            question.reply.publish()

    nursery.start_soon(owner)
    asking: ActorRef[list[int]] = ActorRef("numbers", send)
    assert await asking.query(lambda owned: owned[0]) == 3
    with pytest.raises(IndexError):
        await asking.query(lambda owned: owned[1])
    assert await asking.query(len) == 1
    asking.close()


async def test_an_owner_that_has_ended_says_so() -> None:
    send, receive = trio.open_memory_channel[OwnerQuery[None, None]](1)
    asking: ActorRef[None] = ActorRef("queue", send)
    receive.close()
    with pytest.raises(Ending, match="the daemon is shutting down: its queue accepts no more requests"):
        await asking.query(lambda owned: None)
