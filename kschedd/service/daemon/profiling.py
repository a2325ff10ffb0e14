"""A sampling profiler of this process: a thread samples the stacks of all threads every few milliseconds.

A sample blocks the interpreter for some tens of microseconds. A stack is listed with the outermost frame first, each
frame as `module:function`. Frames outside a Trio task are omitted. The stacks of the event loop therefore begin with
the function of a task (`kschedd.actors.objects.store:StoreActor.run`), which names the actor. A thread is waiting
(`IDLE`) if its innermost frame is in a function that only waits.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Final

import attrs

IDLE: Final = "(idle)"
_DEEPEST: Final = 100
#: The functions of each module in which a thread waits.
_WAITING: Final = {
    "trio._core._io_epoll": frozenset(("get_events",)),
    "trio._core._thread_cache": frozenset(("_work",)),
    "threading": frozenset(("wait", "_wait_for_tstate_lock")),
    "select": frozenset(("poll", "select")),
}
_TASKS_BEGIN: Final = "unrolled_run"


@attrs.frozen
class StackSample:
    """The stack of a thread: the thread's name, and its frames, outermost first.

    A waiting thread has the frames (IDLE,).
    """

    thread: str
    frames: tuple[str, ...]


@attrs.frozen
class Sampled:
    """The samples: how often each stack was found."""

    seconds: float
    looks: int
    stacks: Mapping[StackSample, int]


def look(frames: Mapping[int, FrameType], names: Mapping[int, str], but: int) -> list[StackSample]:
    """Return the stack of every thread except the one with the ident `but`."""
    return [StackSample(names.get(ident, "thread"), stack_of(frame)) for ident, frame in frames.items() if ident != but]


def stack_of(innermost: FrameType) -> tuple[str, ...]:
    module = innermost.f_globals.get("__name__", "")
    if innermost.f_code.co_name in _WAITING.get(module, ()):
        return (IDLE,)
    found: list[str] = []
    frame: FrameType | None = innermost
    while frame is not None and len(found) < _DEEPEST:
        code = frame.f_code
        if code.co_name == _TASKS_BEGIN:
            break
        found.append(f"{frame.f_globals.get('__name__', '?')}:{code.co_qualname}")
        frame = frame.f_back
    return tuple(reversed(found))


def sample(
    seconds: float,
    hertz: float,
    over: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Sampled:
    """Take samples for `seconds` seconds, at least one. Call this function in a separate thread."""
    own, stacks, looks = threading.get_ident(), Counter[StackSample](), 0
    began = clock()
    while True:
        names = {thread.ident or 0: _kind_of(thread.name) for thread in threading.enumerate()}
        stacks.update(look(sys._current_frames(), names, own))
        looks += 1
        took = clock() - began
        if took >= seconds or over():
            return Sampled(took, looks, stacks)
        # Sample times are counted from the start, so that a late sample does not reduce the number of samples.
        wait(max(0.0, min(looks / hertz, seconds) - took))


def _kind_of(name: str) -> str:
    """Return the name of a thread without its number."""
    return name.rstrip("0123456789").rstrip("-_ ") or name
