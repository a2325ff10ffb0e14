"""Tests of a query of several actors in turn, after which the caller is woken once."""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest
import trio

from kschedd.actors.in_turn import Query, query_in_turn
from kschedd.actors.mailbox import ActorRef, Doorbell, Ending, OwnerQuery


@attrs.define(eq=False)
class Owner:
    """An actor that answers with its name when its doorbell rings, as the scheduling actor does."""

    name: str
    room: int = 1
    heard: list[str] = attrs.field(factory=list)
    ref: ActorRef[str] = attrs.field(init=False)
    inbox: trio.MemoryReceiveChannel[OwnerQuery[str, Any]] = attrs.field(init=False)
    bell: Doorbell = attrs.field(factory=Doorbell)

    def __attrs_post_init__(self) -> None:
        send, self.inbox = trio.open_memory_channel[OwnerQuery[str, Any]](self.room)
        self.ref = ActorRef(self.name, send, self.bell)

    async def run(self) -> None:
        while await self.bell.wait():
            query = await self.inbox.receive()
            self.heard.append(self.name)
            query.evaluate(self.name)
            query.reply.publish()


def shout(name: str) -> str:
    return name.upper()


def requests(owners: Sequence[Owner], question: Callable[[str], Any] = shout) -> list[Query]:
    return [(owner.ref, question) for owner in owners]


class Steps(trio.abc.Instrument):
    def __init__(self) -> None:
        self.of: list[str] = []

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.of.append(task.name)


async def test_each_is_asked_after_the_one_before_and_the_asker_wakes_once(nursery: trio.Nursery) -> None:
    heard: list[str] = []
    owners = [Owner(name, heard=heard) for name in ("queue", "scheduler", "decisions")]
    for owner in owners:
        nursery.start_soon(owner.run, name=owner.name)
    await trio.testing.wait_all_tasks_blocked()
    answers: list[str] = []

    async def ask() -> None:
        answers.extend(await query_in_turn(*requests(owners)))

    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    async with trio.open_nursery() as asking:
        asking.start_soon(ask, name="asker")
    trio.lowlevel.remove_instrument(steps)
    assert answers == ["QUEUE", "SCHEDULER", "DECISIONS"]
    assert heard == ["queue", "scheduler", "decisions"]
    assert steps.of.count("asker") == 2  # one step to send the query, and one to receive all answers


async def test_a_channel_without_room_is_waited_for(nursery: trio.Nursery) -> None:
    owners = [Owner("queue"), Owner("scheduler", room=0), Owner("decisions")]
    for owner in owners:
        nursery.start_soon(owner.run)
    with trio.fail_after(60):
        async with trio.open_nursery() as ringing:
            ringing.start_soon(_ring_when_blocked, owners[1])
            assert await query_in_turn(*requests(owners)) == ["QUEUE", "SCHEDULER", "DECISIONS"]


async def _ring_when_blocked(owner: Owner) -> None:
    await trio.testing.wait_all_tasks_blocked()
    owner.bell.ring()


async def test_a_failure_is_the_askers_and_an_owner_that_has_ended_says_so(nursery: trio.Nursery) -> None:
    owners = [Owner(name) for name in ("queue", "scheduler")]
    for owner in owners:
        nursery.start_soon(owner.run)

    def fails(name: str) -> str:
        raise LookupError(name)

    with pytest.raises(LookupError, match="queue"):
        await query_in_turn(*requests(owners, fails))
    gone = Owner("decisions")
    gone.inbox.close()
    with pytest.raises(Ending, match="its decisions accepts no more requests"):
        await query_in_turn(*requests([*owners, gone]))
