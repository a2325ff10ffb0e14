"""The process that writes a daemon's journal and runs as long as the daemon, its parent process.

`main` is its entry point.

A thread of the daemon would be slower: it would repeatedly wait for the interpreter lock of the event loop, and each
write would take two to three times as long.

The process receives commands over a pipe and answers them in order. The daemon's side is
`kschedd.actors.objects.durable_log`. Each message consists of its length in eight bytes, followed by a MessagePack
array:

    ["open", path, epoch]        the first; the journal must exist and have this epoch
    ["write", [PackedWrite, …], true if more of this batch follows]
    ["reserve", version]   ["repair", version]   ["flush_head"]   ["compact_some", events]   ["shrink_some", pages]

    ["done", version, tail, head_flushed, return value of the call]
    ["failed", file, why]   ["damaged", file, why, good version or nil]

If only a part of a batch has arrived, the process sends no answer. Signals that end a daemon do not end the journal
process. The process ends when the pipe is closed, after its current command. Until then the process holds the inherited
lock of the state directory. A new daemon therefore starts only after the old journal process has completed its writes.
"""

import os
import signal
import socket
from contextlib import closing, suppress
from io import BufferedReader
from typing import Any, Final

import msgpack

from kschedd.store.journal.format import JournalDamaged, JournalError
from kschedd.store.journal.writer import JournalWriter, PackedWrite

LENGTH: Final = 8  # bytes, little-endian
_OURS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def framed(message: Any) -> bytes:
    """Encode a message for the pipe."""
    body: bytes = msgpack.packb(message)
    return len(body).to_bytes(LENGTH, "little") + body


def main(descriptor: int) -> None:
    """Execute commands from the pipe with this file descriptor until the pipe is closed."""
    for number in _OURS:
        signal.signal(number, signal.SIG_IGN)
    with (
        socket.socket(fileno=descriptor) as pipe,
        pipe.makefile("rb") as orders,
        closing(_Writing()) as writing,
        suppress(BrokenPipeError, ConnectionResetError),  # the daemon has exited, so the answer is not needed
    ):
        while (order := _read(orders)) is not None:
            answer = writing.answer(order)
            if answer is not None:
                pipe.sendall(framed(answer))


def _read(orders: BufferedReader) -> list[Any] | None:
    """Read the next command; return None if the pipe was closed, even within a command."""
    head = orders.read(LENGTH)
    size = int.from_bytes(head, "little")
    body = orders.read(size)
    if len(head) < LENGTH or len(body) < size:
        return None
    order: list[Any] = msgpack.unpackb(body)
    return order


def _opened(path: str, epoch: str) -> JournalWriter:
    """Open the daemon's journal.

    Raises JournalError if the journal is missing or was replaced; no new journal is created.
    """
    if not os.path.lexists(path):
        raise JournalError(path, "was deleted while the daemon was using it")
    journal = JournalWriter(path)
    if journal.epoch != epoch:
        journal.close()
        raise JournalError(path, "was replaced while the daemon was using it")
    return journal


class _Writing:
    """The open journal, and the incomplete batch received so far."""

    def __init__(self) -> None:
        self._journal: JournalWriter | None = None
        self._batch: list[PackedWrite] = []

    def answer(self, order: list[Any]) -> list[Any] | None:
        """Run a command, and return the answer to send, if any."""
        try:
            done, result = self._do(*order)
        except JournalDamaged as damage:
            return ["damaged", damage.file, damage.why, damage.good_version]
        except JournalError as failure:
            return ["failed", failure.file, failure.why]
        journal = self._journal
        if not done or journal is None:
            return None
        return ["done", journal.version, journal.tail, journal.head_flushed, result]

    def _do(self, name: str, *about: Any) -> tuple[bool, Any]:
        """Run a command; return whether the command is complete, and its result."""
        if name == "open":
            self._journal = _opened(*about)
            return True, None
        assert self._journal is not None, "the first order opens the journal"
        if name == "write":
            writes, more = about
            self._batch += writes
            if more:
                return False, None
            batch, self._batch = self._batch, []
            self._journal.write(batch)
            return True, None
        self._batch = []  # an incomplete batch is discarded
        return True, getattr(self._journal, name)(*about)

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
