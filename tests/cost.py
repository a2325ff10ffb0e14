"""Cost of a piece of work: the Python and C functions called in this thread, and the units of `tests.metering`.

It depends on the input and on nothing else, so that tests can state how it grows.
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
    """The calls and units of a block; complete when it is left."""

    units: int = 0


@contextmanager
def counting() -> Iterator[Cost]:
    """Count what is done within the block."""
    cost, calls, before_units = Cost(), 0, metering.Meter.units

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call") and frame.f_code.co_filename != metering.__file__

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


def cost_of(work: Callable[[], Any]) -> int:
    """Return the cost of `work`. What it raises is part of its work."""
    with counting() as cost:
        with suppress(Exception):  # a refusal has a cost, too
            work()
    return cost.units


def growth_of(work: Callable[[int], Callable[[], Any]], size: int) -> float:
    """Return by which factor the cost grows from an input of `size` to one twice as large.

    `work` makes the call for an input of a size; making the input is not counted, nor what is imported or cached once.
    """
    cost_of(work(10))
    small, large = work(size), work(2 * size)
    least = cost_of(small)
    return cost_of(large) / least
