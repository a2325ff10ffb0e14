"""Tests that slots and turns are shared fairly between clients, and threads limited and abandoned with their client."""

import threading
from collections.abc import Generator

import pytest
import trio
import trio.testing

from kschedd.service import workers
from kschedd.service.turns import FairLimiter, Turns
from kschedd.service.workers import GivenUp, GivenUpError, WorkerPool


async def test_who_waits_is_served_client_by_client(nursery: trio.Nursery) -> None:
    limiter = FairLimiter(1)
    served: list[str] = []

    async def ask(client: str) -> None:
        async with limiter.slot(client):
            served.append(client)
            await trio.lowlevel.checkpoint()

    await limiter.acquire("first")
    for client in ("greedy", "greedy", "greedy", "polite", "other"):
        nursery.start_soon(ask, client)
        await trio.testing.wait_all_tasks_blocked()
    limiter.release("first")
    await trio.testing.wait_all_tasks_blocked()
    assert served == ["greedy", "polite", "other", "greedy", "greedy"]


async def test_who_took_little_of_late_goes_before_those_who_took_much(nursery: trio.Nursery) -> None:
    now_s = 100.0
    limiter = FairLimiter(1, now=lambda: now_s)
    served: list[str] = []

    async def ask(client: str, takes_s: float) -> None:
        nonlocal now_s
        async with limiter.slot(client):
            served.append(client)
            now_s += takes_s
            await trio.lowlevel.checkpoint()

    await limiter.acquire("first")
    for client, takes_s in (("large", 0.5), ("larger", 1.0), ("large", 0.5), ("small", 0.1), ("small", 0.1)):
        nursery.start_soon(ask, client, takes_s)
        await trio.testing.wait_all_tasks_blocked()
    limiter.release("first")
    await trio.testing.wait_all_tasks_blocked()
    assert served == ["large", "larger", "small", "small", "large"]
    now_s += 60  # all of that is long ago
    await limiter.acquire("first")
    for client in ("larger", "small"):
        nursery.start_soon(ask, client, 0.1)
        await trio.testing.wait_all_tasks_blocked()
    limiter.release("first")
    await trio.testing.wait_all_tasks_blocked()
    assert served[5:] == ["larger", "small"]


async def test_nobody_holds_more_than_a_share_though_there_are_slots(nursery: trio.Nursery) -> None:
    limiter = FairLimiter(3, share=2)
    for _ in range(4):
        nursery.start_soon(limiter.acquire, "greedy")
    await trio.testing.wait_all_tasks_blocked()
    assert (limiter.held, limiter.waiting) == (2, 2)
    await limiter.acquire("polite")
    assert limiter.held == 3


async def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    limiter = FairLimiter(1)
    await limiter.acquire("a")
    with trio.move_on_after(0):
        await limiter.acquire("b")
    assert limiter.waiting == 0
    limiter.release("a")
    assert limiter.held == 0


async def test_work_of_two_clients_runs_in_turns_with_a_round_of_the_loop_between(nursery: trio.Nursery) -> None:
    turns = Turns(slice_s=0.0)  # a turn ends after one step
    order: list[str] = []

    def work(name: str, steps: int) -> Generator[None, None, str]:
        for _ in range(steps):
            order.append(name)
            yield
        return name

    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await trio.lowlevel.checkpoint()

    nursery.start_soon(count)
    async with trio.open_nursery() as both:
        both.start_soon(turns.drive, "a", work("a", 3))
        both.start_soon(turns.drive, "b", work("b", 3))
    nursery.cancel_scope.cancel()
    assert sorted(order) == ["a"] * 3 + ["b"] * 3
    assert turns.slices >= 8
    assert rounds >= turns.slices


async def test_a_client_has_one_thread_and_another_one_is_not_kept_waiting() -> None:
    pool = WorkerPool(threads=2)
    go = threading.Event()
    begun: list[str] = []
    first = trio.Event()

    def hang(given_up: GivenUp) -> None:
        begun.append("greedy")
        trio.from_thread.run_sync(first.set)
        go.wait()

    async with trio.open_nursery() as nursery:
        for _ in range(45):
            nursery.start_soon(pool.run, "greedy", hang)
        await first.wait()
        assert await pool.run("polite", lambda given_up: "done") == "done"
        assert begun == ["greedy"]
        assert (pool.slots.held, pool.slots.waiting) == (1, 44)
        nursery.cancel_scope.cancel()
    # No client waits for the thread any more, but it holds its slot until it ends.
    assert (pool.slots.held, pool.slots.waiting) == (1, 0)
    go.set()
    assert await pool.run("greedy", lambda given_up: "next") == "next"
    assert pool.slots.held == 0


async def test_work_whose_client_has_left_is_told_where_it_looks() -> None:
    pool = WorkerPool(threads=1)
    running, ended = trio.Event(), threading.Event()

    def work(given_up: GivenUp) -> None:
        trio.from_thread.run_sync(running.set)
        try:
            while True:
                given_up.check()
        except GivenUpError:
            ended.set()
            raise

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.run, "a", work)
        await running.wait()
        nursery.cancel_scope.cancel()
    assert await pool.run("b", lambda given_up: ended.is_set())


def test_a_thread_pauses_once_in_a_while_and_other_callers_never(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = [100.0], list[float]()
    monkeypatch.setattr(workers, "perf_counter", lambda: now[0])
    monkeypatch.setattr(workers, "sleep", pauses.append)
    thread, caller = GivenUp(pausing=True), GivenUp()
    for _ in range(10):
        thread.check()
        caller.check()
        now[0] += 0.002
    assert len(pauses) == 4
