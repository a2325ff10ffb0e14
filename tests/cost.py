"""The cost of a piece of work: the functions called in this thread, plus the units of `tests.metering`.

The cost depends only on the input, so tests can assert how it grows.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

import attrs

from tests import metering

GROWTH: Final = 2.3
"""Most by which the cost may grow where the input doubles: n log n of inputs of this size, with something to spare."""


@attrs.define
class Cost:
    """The calls and units of a `with` block, complete at its end."""

    units: int = 0


@contextmanager
def counting() -> Iterator[Cost]:
    """Count the calls inside the block."""
    cost, calls, before_units = Cost(), 0, metering.Meter.units
    called, waiting = set[str](), metering.Meter.waiting

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            file = frame.f_code.co_filename
            calls += file != metering.__file__
            if file in waiting:
                called.add(file)

    before, collecting = sys.getprofile(), gc.isenabled()
    gc.disable()  # its callbacks are calls
    sys.setprofile(count)
    try:
        yield cost
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()
        cost.units = calls + metering.Meter.units - before_units
        metering.meter(called)


def cost_of(work: Callable[[], Any]) -> int:
    """Return the cost of `work`. Exceptions are part of the work."""
    with counting() as cost:
        with suppress(Exception):  # a rejection has a cost as well
            work()
    return cost.units


def cost_again(work: Callable[[], Any]) -> int:
    """Return the cost of `work`, which can be repeated, once all of its functions are metered."""
    for _ in metering.until_settled():
        cost = cost_of(work)
    return cost


def growth_of(work: Callable[[int], Callable[[], Any]], size: int) -> float:
    """Return the factor by which the cost grows if the size of the input is doubled.

    `work` creates an input of a size and returns the call; only the call is counted, without imports and one-time
    caches.
    """
    cost_of(work(10))
    for _ in metering.until_settled():
        small, large = work(size), work(2 * size)
        least, most = cost_of(small), cost_of(large)
    return most / least
