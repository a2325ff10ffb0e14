"""What actors are joined by, besides Trio's channels: answers, doorbells, questions.

A `Reply` is where one answer goes. A `Doorbell` wakes an actor that waits for several things at once: each of them
has its own bounded channel, and whoever puts something into one rings; ringing never blocks, and rings before the
actor looks count once. A `Question` is a function that the owner of some state runs over it between two pieces of
its own work, so that everybody else may know about that state without holding it.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import attrs
import trio

from kschedd.errors import KscheddError

T = TypeVar("T")
M = TypeVar("M")
S = TypeVar("S")


@attrs.define(eq=False)
class Ending(KscheddError):
    """The actor asked is ending, or has ended."""

    whom: str
    rpc_code: ClassVar[str] = "shutting_down"

    def __str__(self) -> str:
        return f"the daemon is ending: its {self.whom} takes no more requests"


class Reply(Generic[T]):
    """One answer, or the exception that stands for it. Nobody need be there to hear it."""

    __slots__ = ("_event", "_failure", "_value")

    def __init__(self) -> None:
        self._event = trio.Event()
        self._failure: Exception | None = None
        self._value: T

    def note(self, value: T) -> None:
        """Have the answer ready, from any thread, in place of one that was ready; `announce` it afterwards."""
        self._value = value
        self._failure = None

    def note_failure(self, failure: Exception) -> None:
        self._failure = failure

    def announce(self) -> None:
        self._event.set()

    def give(self, value: T) -> None:
        self.note(value)
        self.announce()

    def refuse(self, failure: Exception) -> None:
        self.note_failure(failure)
        self.announce()

    async def value(self) -> T:
        await self._event.wait()
        if self._failure is not None:
            raise self._failure
        return self._value


class Doorbell:
    """See the module. Closing it is how its actor is told to end."""

    __slots__ = ("_receive", "_send", "closed")

    def __init__(self) -> None:
        self.closed = False
        # One token: a bell that has been rung need not be rung again.
        self._send, self._receive = trio.open_memory_channel[None](1)

    def ring(self) -> None:
        try:
            self._send.send_nowait(None)
        except (trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            pass

    def close(self) -> None:
        """No more rings. The one that was not heard yet still is."""
        self.closed = True
        self._send.close()

    async def wait(self) -> bool:
        """Wait for a ring; False once the bell is closed."""
        try:
            await self._receive.receive()
        except trio.EndOfChannel:
            return False
        return True


@attrs.frozen(eq=False)
class Question(Generic[S, T]):
    ask: Callable[[S], T]
    reply: Reply[T]
    once: bool = False  # it may not be run again to make its answer anew

    def work_out(self, owned: S) -> None:
        """Run it and note the answer, to be announced; what it raises belongs to whoever asked, not to the owner."""
        try:
            self.reply.note(self.ask(owned))
        except Exception as failure:  # the asker's: raised where it awaits the reply
            self.reply.note_failure(failure)


@attrs.frozen(eq=False)
class Asking(Generic[S]):
    """The way to ask the owner of an S. Closing it tells the owner that nobody here asks any more."""

    whom: str
    _send: "trio.MemorySendChannel[Any]"
    _bell: Doorbell | None = None

    async def ask(self, question: Callable[[S], T], *, once: bool = False) -> T:
        """What `question` returns, run by the owner over what it owns; raises what that raises, or Ending."""
        reply: Reply[T] = Reply()
        await post(self._send, Question(question, reply, once), self.whom)
        if self._bell is not None:
            self._bell.ring()
        return await reply.value()

    def close(self) -> None:
        self._send.close()


async def post(channel: "trio.MemorySendChannel[M]", message: M, whom: str) -> None:
    """Send; raises Ending where nobody receives any more."""
    try:
        channel.send_nowait(message)  # most often there is room, and a checkpoint costs more than the send
    except trio.WouldBlock:
        pass
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        raise Ending(whom) from None
    else:
        return
    try:
        await channel.send(message)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        raise Ending(whom) from None


def waiting_in(channel: "trio.MemoryReceiveChannel[M]", most: int) -> list[M]:
    """What is in the channel now, without waiting."""
    taken: list[M] = []
    try:
        while len(taken) < most:
            taken.append(channel.receive_nowait())
    except (trio.WouldBlock, trio.EndOfChannel):
        pass
    return taken


async def batch_from(channel: "trio.MemoryReceiveChannel[M]", most: int) -> list[M]:
    """At least one message, and all others that wait, up to `most`. Raises trio.EndOfChannel."""
    first = await channel.receive()
    return [first, *waiting_in(channel, most - 1)]
