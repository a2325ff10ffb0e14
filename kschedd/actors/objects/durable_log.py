"""The interface of the journal for its actor, with implementations in a thread and in a separate process.

A daemon uses a separate process (`kschedd.store.journal.process`), so that the journal need not wait for the
interpreter lock. If the process has ended, a write fails as on a failed disk. `repair` starts another process, which
rolls back to the last version that was reported as durable. If the process is suspended (SIGSTOP), it is resumed after
some seconds, because it has locked the state directory. In tests with a simulated disk, a thread is used.
"""

import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import attrs
import msgpack
import trio

from kschedd.actors.threads import at_work, in_actor_thread
from kschedd.child_process import beginning, start
from kschedd.store.journal.format import JournalDamaged, JournalError
from kschedd.store.journal.journal import Journal, packed, persistent, reservation
from kschedd.store.journal.process import LENGTH, framed
from kschedd.store.journal.writer import PackedWrite
from kschedd.store.objects.log import WatchEvent

T = TypeVar("T")

_MOST_SENT: Final = 1 << 18  # number of bytes of objects that are packed and sent before other tasks run, in about 2 ms
_MOST_READ: Final = 65536  # bytes
_STOPPED_S: Final = 5.0  # seconds without an answer after which the process is assumed to be suspended
_ENDED_S: Final = 0.005  # interval in seconds of the checks whether a process has ended
BEGIN: Final = beginning("kschedd.store.journal.process")


class DurableLog(Protocol):
    """The interface of the journal for its actor.

    Only one call may run at a time. If a call raises JournalError, nothing has changed.
    """

    @property
    def version(self) -> int:
        """The version of the last write on disk."""

    @property
    def tail(self) -> int:
        """The number of events since the snapshot."""

    @property
    def head_flushed(self) -> bool: ...
    async def append(self, events: Sequence[WatchEvent], /) -> None: ...
    async def flush_head(self) -> None: ...
    async def repair(self) -> None: ...
    async def compact_some(self, events: int, /) -> bool: ...
    async def shrink_some(self, pages: int, /) -> bool: ...
    def close(self) -> None: ...


class BlockingLog(Protocol):
    """The part of Journal that JournalThread uses."""

    @property
    def version(self) -> int: ...
    @property
    def tail(self) -> int: ...
    @property
    def head_flushed(self) -> bool: ...
    def append(self, events: Sequence[WatchEvent], /) -> None: ...
    def flush_head(self) -> None: ...
    def repair(self) -> None: ...
    def compact_some(self, events: int, /) -> bool: ...
    def shrink_some(self, pages: int, /) -> bool: ...
    def close(self) -> None: ...


class Execute(Protocol):
    """A function that runs disk I/O. Calls do not overlap, because each call is awaited."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


async def in_thread(work: Callable[[], T]) -> T:
    return await in_actor_thread(work)


@attrs.frozen(eq=False)
class JournalThread:
    """A journal used in a thread."""

    _journal: BlockingLog
    _run: Execute = in_thread

    @property
    def version(self) -> int:
        return self._journal.version

    @property
    def tail(self) -> int:
        return self._journal.tail

    @property
    def head_flushed(self) -> bool:
        return self._journal.head_flushed

    async def append(self, events: Sequence[WatchEvent]) -> None:
        await self._run(lambda: self._journal.append(events))

    async def flush_head(self) -> None:
        await self._run(self._journal.flush_head)

    async def repair(self) -> None:
        await self._run(self._journal.repair)

    async def compact_some(self, events: int) -> bool:
        return await self._run(lambda: self._journal.compact_some(events))

    async def shrink_some(self, pages: int) -> bool:
        return await self._run(lambda: self._journal.shrink_some(pages))

    def close(self) -> None:
        self._journal.close()


class JournalProcess:
    """A journal written by a separate process. The first call starts the process; `repair` starts it again."""

    def __init__(self, journal: Journal, lock: int | None = None, begin: str = BEGIN) -> None:
        """Close the journal; the process will open it.

        `lock` is the descriptor of the state directory's lock. `begin` is the Python code of the process, with
        placeholders for the pipe's number and the search path.
        """
        self._file = journal.file
        self._epoch = journal.epoch
        self._lock = lock
        self._run = begin
        self.version = journal.version
        self.tail = journal.tail
        self._reserved = journal.state.reserved
        self.head_flushed = journal.head_flushed
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: trio.socket.SocketType | None = None
        journal.close()

    @property
    def pid(self) -> int | None:
        """The pid of the process, or None."""
        return None if self._process is None else self._process.pid

    async def append(self, events: Sequence[WatchEvent]) -> None:
        if version := reservation(events, self._reserved):
            await self._order("reserve", version)
            self._reserved = version
        if not (kept := persistent(events)):
            return
        writes: list[PackedWrite] = []
        size = 0
        for event in kept:
            writes.append(packed(event))
            size += len(writes[-1][-1])
            if size > _MOST_SENT:
                await self._send(["write", writes, True])
                writes, size = [], 0
        await self._order("write", writes, False)

    async def flush_head(self) -> None:
        await self._order("flush_head")

    async def repair(self) -> None:
        await self._order("repair", self.version)

    async def compact_some(self, events: int) -> bool:
        return bool(await self._order("compact_some", events))

    async def shrink_some(self, pages: int) -> bool:
        return bool(await self._order("shrink_some", pages))

    def close(self) -> None:
        """Let the process end, and wait for its end."""
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.wait()
        self._pipe = self._process = None

    async def _order(self, *order: Any) -> Any:
        """Send a command to the process and wait for its answer. Raises JournalError."""
        await self._send(list(order))
        return await self._answer()

    async def _send(self, order: list[Any]) -> None:
        if self._pipe is None:
            await self._begin()
        assert self._pipe is not None
        left = memoryview(framed(order))
        while left:
            left = left[await self._waited(partial(self._pipe.send, left)) :]

    async def _answer(self) -> Any:
        received = bytearray()
        while len(received) < LENGTH or len(received) < LENGTH + int.from_bytes(received[:LENGTH], "little"):
            received += await self._more()
        match msgpack.unpackb(received[LENGTH:]):
            case ["done", version, tail, head_flushed, result]:
                self.version, self.tail, self.head_flushed = version, tail, head_flushed
                return result
            case ["damaged", file, why, good_version]:
                raise JournalDamaged(file, why, good_version)
            case [_, file, why]:
                raise JournalError(file, why)

    async def _more(self) -> bytes:
        assert self._pipe is not None
        some = await self._waited(partial(self._pipe.recv, _MOST_READ))
        if not some:
            raise await self._gone()
        return some

    async def _waited(self, transfer: Callable[[], Awaitable[T]]) -> T:
        """Run a transfer on the pipe and return its result. Raises JournalError."""
        assert self._process is not None
        while True:
            try:
                with at_work(), trio.move_on_after(_STOPPED_S):
                    return await transfer()
            except OSError:
                raise await self._gone() from None
            self._process.send_signal(signal.SIGCONT)

    async def _begin(self) -> None:
        answered = self.version
        self._pipe = trio.socket.from_stdlib_socket(self._started())
        try:
            await self._order("open", self._file, self._epoch)
        except JournalError:
            if self._process is not None:  # False if the process has not ended yet
                await self._end()
            raise
        self.version = answered  # the file may contain later writes of a killed process: `repair` removes them

    def _started(self) -> socket.socket:
        """Start the process, and return this side's end of the pipe. Raises JournalError."""
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    self._process = start(self._run, theirs, inherits=() if self._lock is None else (self._lock,))
                except OSError:
                    ours.close()
                    raise
        except OSError as error:
            raise self._failure(f"cannot be written: no journal process can be started: {error.strerror}") from None
        return ours

    async def _gone(self) -> JournalError:
        """End the process if it still runs, and return the error to report."""
        status = await self._end()
        how = f"by signal {-status}" if status < 0 else f"with exit status {status}"
        return self._failure(f"cannot be written: the process that writes it has ended {how}; another one is started")

    async def _end(self) -> int:
        """End the process if it still runs, and return its exit status.

        This method uses no thread, because threads may be unavailable.
        """
        process = self._process
        assert process is not None
        process.kill()
        with at_work():
            while True:
                if (status := process.poll()) is not None:
                    self.close()
                    return status
                await trio.sleep(_ENDED_S)

    def _failure(self, why: str) -> JournalError:
        return JournalError(self._file, why)
