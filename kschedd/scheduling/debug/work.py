"""Work: an attempt as a generator, which yields the calls for which it waits.

The generator yields shards of independent work (calls of per-node plugins or of extenders) and receives the answers. If
a debugger stops the attempt, the generator yields the StopPoint, and ignores the value sent when it is resumed.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from kschedd.framework.faults import PluginError
from kschedd.framework.status import Status
from kschedd.scheduling.debug.breakpoints import StopPoint

# Independent pieces of the search for a node. The caller of the search runs them, possibly in parallel.
Answers = Sequence[Status | int | None]  # for each row of a shard, a filter's verdict or a score
Shards = list[Callable[[], Answers]]
T = TypeVar("T")
Work = Generator[Shards | StopPoint, list[Answers], T]


def drive(work: Work[T], answer: Callable[[Callable[[], Answers]], Answers] = lambda shard: shard()) -> T:
    """Run work to its end, one shard after the other; no debugger may be active.

    `answer` runs a shard; pass another function to observe the calls and answers.
    """
    try:
        shards = next(work)
        while True:
            assert not isinstance(shards, StopPoint), f"there is no stop point here, at {shards.point} {shards.plugin}"
            shards = work.send(answered(work, shards, answer))
    except StopIteration as end:
        value: T = end.value
        return value


def answered(
    work: Work[T], shards: Shards, answer: Callable[[Callable[[], Answers]], Answers] = lambda shard: shard()
) -> list[Answers]:
    """Run shards and return their answers. A plugin's fault ends the generator."""
    try:
        return [answer(shard) for shard in shards]
    except PluginError as fault:
        work.throw(fault)
        raise AssertionError("a search ends with the fault of a plugin") from fault
