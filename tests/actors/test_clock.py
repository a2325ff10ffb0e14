"""Tests of the cluster's time: real time, faster, and virtual."""

import math

import pytest
import trio.testing

from kschedd.actors.clock import VIRTUAL, Clock


async def test_it_goes_on_with_trios_clock(mock_clock: trio.testing.MockClock) -> None:
    clock = Clock.started(1000.0)
    mock_clock.jump(2.5)
    assert clock.now() == 1002.5
    assert clock.now_ns() == 1_002_500_000_000


async def test_its_moments_are_trios_deadlines(mock_clock: trio.testing.MockClock) -> None:
    clock = Clock.started(1000.0)
    assert clock.deadline(1003.0) == trio.current_time() + 3
    assert clock.deadline(None) == math.inf


@pytest.mark.parametrize("speed", [0.1, 3.0, 10.0, 7.7])
async def test_at_another_speed_waits_end_when_it_is_time_and_not_before(
    autojump_clock: trio.testing.MockClock, speed: float
) -> None:
    clock = Clock.started(1_700_000_000.0, speed)
    with clock.move_on_at(1_700_000_030.0) as wait:
        await trio.sleep_forever()
    assert wait.cancelled_caught
    assert 1_700_000_030.0 <= clock.now() < 1_700_000_030.001


async def test_virtual_time_stands_still_until_it_is_moved(mock_clock: trio.testing.MockClock) -> None:
    clock = Clock.started(1000.0, VIRTUAL)
    mock_clock.jump(50)
    assert clock.now() == 1000.0
    clock.move_to(1060.0)
    assert clock.now() == 1060.0
    clock.move_to(1010.0)
    assert clock.now() == 1060.0, "time does not go back"


async def test_waits_follow_each_change_of_the_clock(autojump_clock: trio.testing.MockClock) -> None:
    clock = Clock.started(1000.0, VIRTUAL)
    ended: list[tuple[str, float]] = []

    async def wait(name: str, until_s: float) -> None:
        with clock.move_on_at(until_s):
            await trio.sleep_forever()
        ended.append((name, clock.now()))

    async with trio.open_nursery() as nursery:
        for name, until_s in (("moved", 1010.0), ("passed", 1020.0), ("already", 1000.0)):
            nursery.start_soon(wait, name, until_s)
        await trio.testing.wait_all_tasks_blocked()
        assert ended == [("already", 1000.0)]
        assert clock.next_deadline() == 1010.0
        clock.move_to(1010.0)
        await trio.testing.wait_all_tasks_blocked()
        assert ended == [("already", 1000.0), ("moved", 1010.0)]
        clock.set_speed(5.0)
        started = trio.current_time()
    assert [name for name, _ in ended] == ["already", "moved", "passed"]
    assert trio.current_time() - started == pytest.approx(2.0)
    assert clock.next_deadline() is None


async def test_a_change_of_speed_is_no_jump(mock_clock: trio.testing.MockClock) -> None:
    clock = Clock.started(1000.0)
    mock_clock.jump(4)
    clock.set_speed(10.0)
    assert clock.now() == 1004.0
    mock_clock.jump(2)
    assert clock.now() == 1024.0
