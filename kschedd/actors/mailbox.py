"""Communication between actors in addition to Trio's channels: replies, doorbells, and queries to an actor's state.

A `Reply` is a future for one result. A `Doorbell` wakes an actor that waits on several bounded channels: the sender
puts its message into a channel and then rings the bell. Ringing never blocks, and several rings in a row wake the actor
once. An `OwnerQuery` is a function that an actor runs on its state between two steps of its own work, so that other
tasks can read the state without sharing it.

Actors close their channels with `with`, not with `async with`. The latter runs other tasks while an exception leaves
the actor: if another actor fails in this moment, its cancellation would replace the exception, and no log would name
the bug.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import attrs
import trio

from kschedd.errors import KscheddError

T = TypeVar("T")
M = TypeVar("M")
S = TypeVar("S")


@attrs.define(eq=False)
class Ending(KscheddError, rpc_code="shutting_down"):
    """The error if the queried actor is shutting down or has ended."""

    whom: str

    def __str__(self) -> str:
        return f"the daemon is shutting down: its {self.whom} accepts no more requests"


class Reply(Generic[T]):
    """A future for one result or exception. A result may be set before a task waits for it."""

    __slots__ = ("_event", "_failure", "_value")

    def __init__(self) -> None:
        self._event = trio.Event()
        self._failure: Exception | None = None
        self._value: T

    def note(self, value: T) -> None:
        """Set the result from any thread, in place of an earlier one.

        Call `publish` afterwards to wake the waiting task.
        """
        self._value = value
        self._failure = None

    def note_failure(self, failure: Exception) -> None:
        self._failure = failure

    def publish(self) -> None:
        self._event.set()

    def give(self, value: T) -> None:
        self.note(value)
        self.publish()

    def refuse(self, failure: Exception) -> None:
        self.note_failure(failure)
        self.publish()

    async def value(self) -> T:
        """Return the result; call this method only once. If the result is already set, there is no checkpoint."""
        if not self._event.is_set():
            await self._event.wait()
        if (failure := self._failure) is not None:
            self._failure = None  # breaks a reference cycle through the failure's traceback
            try:
                raise failure
            finally:
                del failure
        return self._value


class Doorbell:
    """Wakes an actor that waits on several channels.

    Closing the doorbell ends the actor.
    """

    __slots__ = ("_rung", "_wake", "closed")

    def __init__(self) -> None:
        self.closed = False
        self._rung = False
        self._wake = trio.Event()

    def ring(self) -> None:
        if not self._rung and not self.closed:
            self._rung = True
            self._wake.set()

    def close(self) -> None:
        """Accept no more rings. A pending notification is still delivered."""
        self.closed = True
        self._wake.set()

    async def wait(self) -> bool:
        """Wait for a notification. Return False once the doorbell is closed."""
        await self._wake.wait()
        rung, self._rung = self._rung, False
        if not self.closed:
            self._wake = trio.Event()
        return rung


def rung_from_threads(bell: Doorbell) -> Callable[[], None]:
    """Return a function that rings the bell from any thread, and does nothing after the end of this Trio run."""
    token = trio.lowlevel.current_trio_token()

    def ring() -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(bell.ring, idempotent=True)

    return ring


@attrs.frozen(eq=False)
class OwnerQuery(Generic[S, T]):
    query: Callable[[S], T]
    reply: Reply[T]
    once: bool = False  # true if the function must not run again for a second result
    long: bool = False  # true if the function may take long; the actor then runs it in a thread

    def evaluate(self, owned: S) -> None:
        """Run the function and set the reply, without waking the caller.

        The caller receives exceptions; the actor does not.
        """
        try:
            self.reply.note(self.query(owned))
        except Exception as failure:  # raised again in the caller
            self.reply.note_failure(failure)


@attrs.frozen(eq=False)
class ActorRef(Generic[S]):
    """A reference to the actor that owns a state of type S.

    Closing the reference means that its user sends no more queries.
    """

    whom: str
    _send: "trio.MemorySendChannel[Any]"
    _bell: Doorbell | None = None

    async def query(self, question: Callable[[S], T], *, once: bool = False, long: bool = False) -> T:
        """Run `question` on the actor's state; return the result, or raise the function's exception or Ending.

        If the actor is the scheduling actor, a `long` function does not block the event loop.
        """
        return await (await self.ask(question, once=once, long=long)).value()

    async def ask(self, question: Callable[[S], T], *, once: bool = False, long: bool = False) -> Reply[T]:
        """Send a query without waiting for the result.

        Queries are answered in the order in which they are sent.
        """
        reply: Reply[T] = Reply()
        await post(self._send, OwnerQuery(question, reply, once, long), self.whom)
        if self._bell is not None:
            self._bell.ring()
        return reply

    def pass_on(self, query: OwnerQuery[S, Any]) -> bool:
        """Send a query without waiting; return False if the channel is full or the actor has ended."""
        try:
            self._send.send_nowait(query)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        if self._bell is not None:
            self._bell.ring()
        return True

    def close(self) -> None:
        self._send.close()


async def post(channel: "trio.MemorySendChannel[M]", message: M, whom: str) -> None:
    """Send a message; raises Ending if the receiver is closed."""
    try:
        channel.send_nowait(message)  # the channel is rarely full, and a checkpoint costs more than the send
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
    """Return up to `most` messages that are now in the channel, without waiting."""
    taken: list[M] = []
    try:
        while len(taken) < most:
            taken.append(channel.receive_nowait())
    except (trio.WouldBlock, trio.EndOfChannel):
        pass
    return taken


async def batch_from(channel: "trio.MemoryReceiveChannel[M]", most: int) -> list[M]:
    """Wait for a message.

    Return the message together with all other waiting messages, at most `most`. Raises trio.EndOfChannel.
    """
    first = await channel.receive()
    return [first, *waiting_in(channel, most - 1)]
