import math

import trio.testing

from kschedd.actors.clock import Clock


async def test_it_goes_on_with_trios_clock(mock_clock: trio.testing.MockClock) -> None:
    clock = Clock.started(1000.0)
    mock_clock.jump(2.5)
    assert clock.now() == 1002.5
    assert clock.now_ns() == 1_002_500_000_000


async def test_its_moments_are_trios_deadlines(mock_clock: trio.testing.MockClock) -> None:
    clock = Clock.started(1000.0)
    assert clock.deadline(1003.0) == trio.current_time() + 3
    assert clock.deadline(None) == math.inf
