import gc
import time
from collections.abc import Generator

import pytest
import trio
import trio.testing

from kschedd.actors.mailbox import Ending
from kschedd.actors.objects.store import Message, StoreActor, StoreClient
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import Gone, NotFound
from kschedd.store.objects.log import WatchEvent
from kschedd.store.store import Store
from tests.actors.clusters import node, pod


@pytest.fixture
async def store(nursery: trio.Nursery) -> StoreClient:
    send, receive = trio.open_memory_channel[Message](16)
    nursery.start_soon(StoreActor(Store(now=lambda: 0.0, history=10), receive).run)
    return StoreClient.of(send)


async def test_a_request_reads_and_writes_with_nothing_in_between(store: StoreClient) -> None:
    await store.create(pod("counter", cpu="1"))

    def count(owned: Store) -> int:
        labels = owned.get("Pod", "default", "counter").labels
        number = int(labels.get("n", "0")) + 1
        owned.merge_patch("Pod", "default", "counter", {"metadata": {"labels": {"n": str(number)}}})
        return number

    seen: list[int] = []

    async def ask() -> None:
        seen.append(await store.do(count))

    async with trio.open_nursery() as many:
        for _ in range(20):
            many.start_soon(ask)
    assert sorted(seen) == list(range(1, 21))


async def test_what_a_request_raises_is_its_askers_alone(store: StoreClient) -> None:
    with pytest.raises(NotFound):
        await store.bind("default", "nobody", "n1")
    with pytest.raises(ZeroDivisionError):
        await store.do(lambda owned: 1 // 0)
    assert (await store.create(node())).name == "n1"


def _two_pods(store: ClusterWriter, fault: Exception | None = None) -> Generator[None, None, None]:
    """Create two pods; other tasks run between the writes."""
    store.create(pod("a"))
    time.sleep(0.01)
    yield
    if fault is not None:
        raise fault
    store.create(pod("b"))


@pytest.mark.parametrize("fault", [None, ZeroDivisionError()])
async def test_of_a_write_in_steps_nobody_sees_a_part(store: StoreClient, fault: Exception | None) -> None:
    watch = await store.watch(["Pod"])
    done = False
    seen_before: list[int] = []

    async def look() -> None:
        while not done:
            if watch.behind:
                seen_before.append(len(watch.take()))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        if fault is None:
            await store.do_in_steps(_two_pods)
        else:
            with pytest.raises(ZeroDivisionError):
                await store.do_in_steps(lambda owned: _two_pods(owned, fault))
        done = True
    seen = sum(seen_before) or len(watch.take())
    assert seen_before in ([], [seen])
    assert seen == (2 if fault is None else 1)
    await store.create(pod("c"))
    assert [event.new.name for event in watch.take()] == ["c"]


async def test_many_are_created_each_on_its_own(store: StoreClient) -> None:
    first, second, third = await store.create_many([pod("a"), pod("a"), pod("b")])
    assert [getattr(first, "key", None), getattr(third, "key", None)] == ["default/a", "default/b"]
    assert str(second) == 'pods "a" already exists'


async def test_a_watch_begins_with_what_is_there_and_misses_nothing(store: StoreClient) -> None:
    await store.create(node("n1"))
    watch = await store.watch(["Node"], with_present=True)
    assert watch.behind
    assert await watch.wait()
    await store.create(node("n2"))
    assert [(event.type, event.new.name) for event in watch.take()] == [("ADDED", "n1")]
    assert [(event.type, event.new.name) for event in watch.take()] == [("ADDED", "n2")]
    assert not watch.behind


async def test_what_a_watch_begins_with_is_listed_while_others_have_the_event_loop(
    store: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kschedd.actors.objects.store._STEPS_S", 0.0)
    monkeypatch.setattr("kschedd.store.cluster_api._PART", 1)
    names = [f"n{number}" for number in range(10, 40)]
    await store.create_many([node(name) for name in reversed(names)])
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            await trio.lowlevel.checkpoint()
            rounds += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        before = rounds
        watch = await store.watch(["Node"], with_present=True)
        between = rounds - before
        nursery.cancel_scope.cancel()
    assert [event.new.name for event in watch.take()] == names
    assert between >= len(names), "here each is listed in a step of its own"


async def test_only_events_of_its_kinds_wake_a_watcher(store: StoreClient) -> None:
    watch = await store.watch(["Pod"])
    await store.create(node())
    with trio.move_on_after(0) as nothing:
        await watch.wait()
    assert nothing.cancelled_caught
    await store.create(pod())
    assert await watch.wait()
    assert [event.new.key for event in watch.take()] == ["default/web"]


async def test_a_watcher_sleeps_through_what_does_not_concern_it_and_takes_it_with_the_rest(store: StoreClient) -> None:
    watch = await store.watch(["Pod"], concerns=lambda event: event.new.name.startswith("mine"))
    await store.create(node("mine"))  # of another kind
    await store.create(pod("other"))
    with trio.move_on_after(0) as nothing:
        await watch.wait()
    assert nothing.cancelled_caught
    await store.create(pod("mine"))
    assert await watch.wait()
    assert [event.new.name for event in watch.take()] == ["other", "mine"]


async def test_a_watcher_that_nothing_concerns_is_woken_before_the_log_is_kept_for_it_too_long(
    store: StoreClient,
) -> None:
    watch = await store.watch(["Pod"], concerns=lambda event: False)
    await store.create_many([pod(f"p{number}") for number in range(1_000)])
    with trio.move_on_after(0) as nothing:
        await watch.wait()
    assert nothing.cancelled_caught
    await store.create(pod("last"))
    assert await watch.wait()


async def test_of_many_events_at_once_none_is_looked_at_for_a_watcher(store: StoreClient) -> None:
    looked_at: list[WatchEvent] = []
    watch = await store.watch(["Pod"], concerns=lambda event: bool(looked_at.append(event)))
    await store.create_many([pod(f"p{number}") for number in range(1_001)])
    assert await watch.wait()
    assert looked_at == []
    assert len(watch.take()) == 1_001


async def test_a_watch_from_too_long_ago_is_refused(store: StoreClient) -> None:
    for number in range(40):
        await store.create(node(f"n{number}"))
    with pytest.raises(Gone):
        await store.watch(["Node"], 1)


async def test_a_watch_that_was_dropped_is_forgotten(store: StoreClient) -> None:
    watch = await store.watch()
    bell = watch.bell
    del watch
    gc.collect()
    await store.create(node())
    with trio.move_on_after(0) as nothing:
        await bell.wait()
    assert nothing.cancelled_caught


async def test_ending_closes_the_watches_and_then_serves_whoever_is_left() -> None:
    send, receive = trio.open_memory_channel[Message](16)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(StoreActor(Store(now=lambda: 0.0), receive).run)
        store = StoreClient.of(send)
        other = store.clone()
        watch = await store.watch()
        await store.end_watches()
        store.close()
        while await watch.wait():
            pass
        assert watch.ended
        assert (await other.create(node())).name == "n1"
        other.close()
    with pytest.raises(Ending):
        await other.create(node("n2"))
