"""A sampling profiler of this process: every few milliseconds a thread looks at where all threads are.

It holds nobody up: a look takes the interpreter for some tens of microseconds. A stack is said from the outside in,
each frame as `module:function`; what stands before the first frame of a Trio task is left out, so that the stacks of
the loop begin with the task's own function (`kschedd.actors.objects.store:StoreActor.run`), which names the actor.
A thread that waits for work is `IDLE`: its innermost frame is in a module that does nothing but wait.
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
#: By module: functions in which a thread waits.
_WAITING: Final = {
    "trio._core._io_epoll": frozenset(("get_events",)),
    "trio._core._thread_cache": frozenset(("_work",)),
    "threading": frozenset(("wait", "_wait_for_tstate_lock")),
    "select": frozenset(("poll", "select")),
}
_TASKS_BEGIN: Final = "unrolled_run"


@attrs.frozen
class StackSample:
    """Where a thread was: its name, and the frames from the outside in; (IDLE,) where it waited."""

    thread: str
    frames: tuple[str, ...]


@attrs.frozen
class Sampled:
    """What was seen: how often each stack, in so many looks."""

    seconds: float
    looks: int
    stacks: Mapping[StackSample, int]


def look(frames: Mapping[int, FrameType], names: Mapping[int, str], but: int) -> list[StackSample]:
    """Where every thread is, except the one with the ident `but`."""
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
    """Look for so long; at least once. To be called in a thread of its own."""
    own, stacks, looks = threading.get_ident(), Counter[StackSample](), 0
    began = clock()
    while True:
        names = {thread.ident or 0: _kind_of(thread.name) for thread in threading.enumerate()}
        stacks.update(look(sys._current_frames(), names, own))
        looks += 1
        took = clock() - began
        if took >= seconds or over():
            return Sampled(took, looks, stacks)
        # By the clock rather than by the last look: so many looks as were asked for, if there is time.
        wait(max(0.0, min(looks / hertz, seconds) - took))


def _kind_of(name: str) -> str:
    """Threads that are named by number are one."""
    return name.rstrip("0123456789").rstrip("-_ ") or name
