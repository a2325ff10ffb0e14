"""Tests of the queue actor: the pods that it sends, and when and in which order."""

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from kschedd.actors import queue as queue_actor
from kschedd.actors.clock import Clock
from kschedd.actors.mailbox import ActorRef, Doorbell, OwnerQuery, waiting_in
from kschedd.actors.queue import ANSWERS, Popped, QueueActor, QueueUpdate
from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.log.log import Entry
from kschedd.queue.entry import Move, QueuedPod, SubQueue
from kschedd.queue.operations import AttemptFailed, EventsObserved, QueueOperation
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.store.objects.log import ADDED, WatchEvent
from tests.actors.clusters import pod

BOTH = frozenset({"NodeResourcesFit"})


def made(name: str, priority: int = 0, nominated: str = "") -> Pod:
    raw = pod(name, priority=priority)
    raw["metadata"]["uid"] = f"uid-{name}"
    if nominated:
        raw["status"] = {"nominatedNodeName": nominated}
    return Pod.from_raw(raw)


def come(*pods: Pod) -> EventsObserved:
    events = [WatchEvent(ADDED, None, one, number) for number, one in enumerate(pods, 1)]
    return EventsObserved(events, frozenset(), frozenset())


@attrs.define(eq=False)
class Bench:
    """The queue actor, with a test in the role of the scheduling actor."""

    updates: "trio.MemorySendChannel[QueueUpdate | OwnerQuery[QueueActor, Any]]"
    popped: "trio.MemoryReceiveChannel[Popped]"
    bell: Doorbell
    log: "trio.MemoryReceiveChannel[Sequence[Entry]]"

    async def tell(self, *operations: QueueOperation, wants: int | None = None, released: tuple[str, ...] = ()) -> None:
        await self.updates.send(QueueUpdate(released, operations, wants))
        await trio.testing.wait_all_tasks_blocked()

    def handed_out(self) -> list[QueuedPod]:
        found: list[QueuedPod] = []
        try:
            while True:
                found.extend(self.popped.receive_nowait().entries)
        except trio.WouldBlock:
            return found

    def names(self) -> list[str]:
        return [entry.pod.name for entry in self.handed_out()]

    async def counts(self) -> dict[SubQueue, int]:
        counts = await ActorRef("queue", self.updates).query(lambda owner: owner.queue.counts())
        return {place: count for place, count in counts.items() if count}


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    driver = SchedulingDriver(SchedulingMachine(default_config()))
    to_queue, queue_in = trio.open_memory_channel[QueueUpdate | OwnerQuery[QueueActor, Any]](8)
    to_popped, popped_in = trio.open_memory_channel[Popped](ANSWERS)
    bell = Doorbell()
    to_log, log_in = trio.open_memory_channel[Sequence[Entry]](math.inf)
    actor = QueueActor(driver.config_changes.for_queue(), queue_in, to_popped, to_log, bell, Clock.started(1000.0))
    driver.machine.handle.evicting = actor.operations.evicting
    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run)
        yield Bench(to_queue, popped_in, bell, log_in)
        to_queue.close()


async def test_pods_are_handed_out_when_they_are_wanted_the_most_important_first(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a"), made("b", 5), made("c", 1)))
        assert queue.names() == []
        await queue.tell(wants=2)
        assert queue.names() == ["b", "c"]
        await queue.tell(wants=32)
        assert queue.names() == ["a"]


async def test_moves_are_in_the_log_before_anybody_is_answered(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.updates.send(QueueUpdate((), (come(made("a")),), 1))
        await queue.counts()
        moves = [entry for entries in waiting_in(queue.log, 10) for entry in entries]
        assert [(move.pod, move.source, move.target) for move in moves if isinstance(move, Move)] == [
            ("default/a", SubQueue.OUTSIDE, SubQueue.ACTIVE),
            ("default/a", SubQueue.ACTIVE, SubQueue.IN_FLIGHT),
        ]


async def test_a_request_waits_for_a_pod_and_rings(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(wants=32)
        assert queue.names() == []
        await queue.tell(come(made("a")))
        assert await queue.bell.wait()
        assert queue.names() == ["a"]


async def test_a_more_important_pod_is_handed_out_after_others_unasked(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a", 5), made("b", 5)), wants=32)
        assert queue.names() == ["a", "b"]
        await queue.tell(come(made("less", 4)))
        assert queue.names() == []
        await queue.tell(come(made("more", 6), made("most", 7)))
        assert queue.names() == ["most", "more"]
        await queue.tell(wants=32)
        assert queue.names() == ["less"]


async def test_a_pod_that_comes_unasked_leaves_the_request_as_it_is(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a"), made("b")), wants=32)
        answer = queue.popped.receive_nowait()
        assert answer.requested
        # A more important pod was sent without a request just before the next request arrives.
        await queue.tell(come(made("more", 1)))
        await queue.tell(wants=32)
        unasked = queue.popped.receive_nowait()
        assert ([entry.pod.name for entry in unasked.entries], unasked.requested) == (["more"], False)
        await queue.tell(come(made("c")))
        answer = queue.popped.receive_nowait()
        assert ([entry.pod.name for entry in answer.entries], answer.requested) == (["c"], True)


async def test_more_important_pods_than_there_is_room_for_wait_in_the_queue(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a"), made("b")), wants=32)
        assert queue.names() == ["a", "b"]
        await queue.tell(come(*(made(f"more-{number}", 1) for number in range(ANSWERS + 2))))
        assert len(queue.names()) == ANSWERS
        assert await queue.counts() == {SubQueue.ACTIVE: 2, SubQueue.IN_FLIGHT: ANSWERS + 2}
        await trio.testing.wait_all_tasks_blocked()
        assert len(queue.names()) == 2


async def test_a_pod_with_a_nomination_of_its_own_is_told_of_with_the_answer(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a", nominated="n1"), made("b")), wants=32)
        answer = queue.popped.receive_nowait()
        assert [one.name for one in answer.nominated] == ["a"]
        await queue.tell(come(made("c")), wants=32)
        assert queue.popped.receive_nowait().nominated == ()


async def test_a_nomination_is_told_of_at_once_though_the_pod_is_not_wanted(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a", 5), made("b", 5)), wants=32)
        assert queue.names() == ["a", "b"]
        await queue.tell(come(made("c", nominated="n1")))
        reported = queue.popped.receive_nowait()
        assert ([one.name for one in reported.nominated], reported.entries, reported.requested) == (["c"], (), False)


async def test_a_popped_pod_has_not_missed_what_was_observed_before_its_attempt_began(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a"), made("b")), wants=32)
        first, second = queue.handed_out()
        running = attrs.evolve(made("gone", 0), node_name="n1")
        gone = WatchEvent("DELETED", running, running, 9)
        await queue.tell(EventsObserved([gone], frozenset(), frozenset(), 1))
        await queue.tell(AttemptFailed(first, first.pod, BOTH, frozenset(), seen=0))
        await queue.tell(AttemptFailed(second, second.pod, BOTH, frozenset(), seen=1))
        assert await queue.counts() == {SubQueue.BACKOFF: 1, SubQueue.UNSCHEDULABLE: 1}
        assert first.place is SubQueue.BACKOFF


async def test_a_failed_pod_sleeps_and_a_released_one_is_gone(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a"), made("b")), wants=32)
        first, second = queue.handed_out()
        await queue.tell(AttemptFailed(first, first.pod, BOTH, frozenset()), released=(second.uid,))
        assert await queue.counts() == {SubQueue.UNSCHEDULABLE: 1}


async def test_a_preemptor_is_not_woken_by_what_happened_before_its_victims_are_evicted(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a"), made("b")), wants=32)
        first, second = queue.handed_out()
        running = made("gone", 0)
        gone = WatchEvent("DELETED", running, attrs.evolve(running, node_name="n1"), 9)
        await queue.tell(EventsObserved([gone], frozenset(), frozenset()))
        await queue.tell(
            AttemptFailed(first, first.pod, BOTH, frozenset(), evicting=True),
            AttemptFailed(second, second.pod, BOTH, frozenset()),
        )
        places = await ActorRef("queue", queue.updates).query(
            lambda owner: {name: owner.queue.entry(f"default/{name}").place for name in "ab"}
        )
        assert places == {"a": SubQueue.GATED, "b": SubQueue.BACKOFF}


async def test_a_preemptor_is_tried_again_only_after_its_last_victim(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a")), wants=32)
        [entry] = queue.handed_out()
        one, two = (attrs.evolve(made(name, 0), node_name="n1") for name in ("one", "two"))
        victims = frozenset((one.uid, two.uid))
        await queue.tell(AttemptFailed(entry, entry.pod, BOTH, frozenset(), evicting=True, victims=victims))

        async def place() -> SubQueue:
            return await ActorRef("queue", queue.updates).query(lambda owner: owner.queue.entry("default/a").place)

        await queue.tell(EventsObserved([WatchEvent("DELETED", one, one, 9)], frozenset(), frozenset()))
        assert await place() is SubQueue.GATED
        await queue.tell(EventsObserved([WatchEvent("DELETED", two, two, 10)], frozenset(), frozenset()))
        assert await place() is SubQueue.BACKOFF


async def backing_off(queue: Bench, *pods: Pod) -> None:
    """Make these pods back off: reject them, and wake them by an event that arrived during their attempt."""
    await queue.tell(come(*pods), wants=32)
    entries = queue.handed_out()
    running = attrs.evolve(made("gone", 0), node_name="n1")
    gone = WatchEvent("DELETED", running, running, 9)
    await queue.tell(EventsObserved([gone], frozenset(), frozenset()))
    await queue.tell(*(AttemptFailed(entry, entry.pod, BOTH, frozenset()) for entry in entries))


async def test_a_pod_that_becomes_active_is_handed_out_after_those_popped_early(autojump_clock: Any) -> None:
    async with bench() as queue:
        await backing_off(queue, made("a", 5), made("b", 5))
        await queue.tell(wants=32)
        early = queue.handed_out()
        assert [(entry.pod.name, entry.popped_early > 0) for entry in early] == [("a", True), ("b", True)]
        await queue.tell(come(made("less", 4)))
        [active] = queue.handed_out()
        assert (active.pod.name, active.popped_early) == ("less", 0)


async def test_pods_popped_early_count_as_active_once_their_backoff_has_expired(autojump_clock: Any) -> None:
    async with bench() as queue:
        await backing_off(queue, made("a", 5), made("b", 5))
        await queue.tell(wants=32)
        assert queue.names() == ["a", "b"]
        await trio.sleep(2.5)
        await queue.tell(come(made("less", 4)))
        assert queue.names() == []
        await queue.tell(come(made("more", 6)))
        assert queue.names() == ["more"]


async def test_backoffs_end_with_a_second(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a")), wants=32)
        [entry] = queue.handed_out()
        await queue.tell(AttemptFailed(entry, entry.pod, frozenset(), frozenset()), wants=32)
        assert await queue.counts() == {SubQueue.ERROR_BACKOFF: 1}
        await trio.sleep(2.5)
        assert queue.names() == ["a"]


async def test_pods_left_over_are_moved_every_30_seconds_and_not_between(autojump_clock: Any) -> None:
    async with bench() as queue:
        await queue.tell(come(made("a")), wants=32)
        [entry] = queue.handed_out()
        await trio.sleep(2)
        await queue.tell(AttemptFailed(entry, entry.pod, BOTH, frozenset()))
        await trio.sleep(318)
        assert await queue.counts() == {SubQueue.UNSCHEDULABLE: 1}, "for more than five minutes"
        await trio.sleep(11)
        assert await queue.counts() == {SubQueue.ACTIVE: 1}


async def test_it_ends_when_nobody_can_tell_it_anything(autojump_clock: Any) -> None:
    with trio.fail_after(1):
        async with bench() as queue:
            await queue.tell(come(made("a")))


async def test_many_events_are_taken_in_with_rounds_of_the_loop_between(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # every slice ends immediately, independent of the machine's speed
    monkeypatch.setattr(queue_actor, "_SLICE_S", -1.0)
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await trio.lowlevel.checkpoint()

    async with bench() as queue, trio.open_nursery() as nursery:
        await queue.updates.send(QueueUpdate((), [come(*(made(f"p{number}") for number in range(2000)))], None))
        nursery.start_soon(count)
        while not (await queue.counts()).get(SubQueue.ACTIVE):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
        assert await queue.counts() == {SubQueue.ACTIVE: 2000}
    assert rounds > 2
