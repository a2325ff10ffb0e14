"""Cost of a call: the number of functions called, ours and C's, in this thread.

It depends on the input and on nothing else, so that tests can state how it grows.
"""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

GROWTH: Final = 2.3
"""Most by which the cost may grow where the input doubles: n log n of inputs of this size, with something to spare."""


def cost_of(work: Callable[[], Any]) -> int:
    """Return the number of calls that `work` makes. What it raises is part of its work."""
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before, collecting = sys.getprofile(), gc.isenabled()
    gc.disable()  # its callbacks are calls
    sys.setprofile(count)
    try:
        work()
    except Exception:  # a refusal has a cost, too
        calls += 1
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()
    return calls


def growth_of(work: Callable[[int], Callable[[], Any]], size: int) -> float:
    """Return by which factor the cost grows from an input of `size` to one twice as large.

    `work` makes the call for an input of a size; making the input is not counted, nor what is imported or cached once.
    """
    cost_of(work(10))
    small, large = work(size), work(2 * size)
    least = cost_of(small)
    return cost_of(large) / least
