"""Tests of the profiler: the positions that it records for threads, and how long it samples."""

import sys
import threading
from collections.abc import Generator
from types import FrameType

import trio

from kschedd.service.daemon.profiling import IDLE, StackSample, look, sample, stack_of


def test_a_stack_is_said_from_the_outside_in() -> None:
    def inner() -> FrameType:
        return sys._getframe()

    def outer() -> FrameType:
        return inner()

    found = stack_of(outer())
    here = "test_a_stack_is_said_from_the_outside_in"
    # A frame that has returned has no callers.
    assert found[-1].endswith(f":{here}.<locals>.inner")


async def test_a_task_s_stack_begins_with_its_own_function() -> None:
    async def innermost() -> tuple[str, ...]:
        return stack_of(sys._getframe())

    async def task() -> None:
        found.append(await innermost())

    found: list[tuple[str, ...]] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
    (stack,) = found
    assert [frame.rpartition(".")[2] for frame in stack] == ["task", "innermost"]


def test_who_waits_is_idle_and_whoever_looks_is_not_seen() -> None:
    ready, over = threading.Event(), threading.Event()

    def waiting() -> None:
        ready.set()
        over.wait()

    thread = threading.Thread(target=waiting, name="waits")
    thread.start()
    ready.wait()
    try:
        own = threading.get_ident()
        while True:  # until the thread has moved from `set` to `wait`
            seen = look(sys._current_frames(), {thread.ident or 0: "waits", own: "looks"}, own)
            if StackSample("waits", (IDLE,)) in seen:
                break
        assert all(each.thread != "looks" for each in seen)
    finally:
        over.set()
        thread.join()


def clock(*times: float) -> Generator[float, None, None]:
    yield from times


def test_it_looks_as_often_as_was_asked_and_no_longer() -> None:
    times, waited = clock(0.0, 0.0, 0.2, 0.5, 1.0), list[float]()
    found = sample(1.0, 4.0, clock=lambda: next(times), wait=waited.append)
    assert (found.looks, found.seconds) == (4, 1.0)
    assert [round(each, 3) for each in waited] == [0.25, 0.3, 0.25]


def test_it_ends_when_nobody_wants_to_know_any_more() -> None:
    assert sample(600.0, 100.0, over=lambda: True).looks == 1
