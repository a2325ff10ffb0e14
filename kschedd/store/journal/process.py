"""The process that writes a daemon's journal, for as long as its parent lives. `main` is where it begins.

In the daemon itself a thread would have to: it waits for the interpreter lock again and again while the event loop is
at work, and each write takes two to three times as long.

Over one pipe it gets an order and answers it, one after the other; the other end is
`kschedd.actors.objects.durable_log`. Each is its length, in eight bytes, and a message of MessagePack:

    ["open", path, epoch]        the first; the journal must be there, and be of this epoch
    ["write", [PackedWrite, …], whether more of this batch follows]
    ["repair", version]   ["flush_head"]   ["compact_some", events]   ["shrink_some", pages]

    ["done", version, tail, head_flushed, what the call returned]
    ["failed", file, why]   ["damaged", file, why, good version or nil]

A part of a batch that more follows is not answered. Signals that end a daemon do not end it: it ends when the pipe is
closed, after the order that it has. Until then it holds the lock of the state directory, which it has inherited, so
that whoever starts after a daemon that was killed finds all that this one still writes.
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

LENGTH: Final = 8  # bytes, the least significant first
_OURS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def framed(message: Any) -> bytes:
    """A message as it goes over the pipe."""
    body: bytes = msgpack.packb(message)
    return len(body).to_bytes(LENGTH, "little") + body


def main(descriptor: int) -> None:
    """Serve the pipe with this descriptor until it is closed."""
    for number in _OURS:
        signal.signal(number, signal.SIG_IGN)
    with (
        socket.socket(fileno=descriptor) as pipe,
        pipe.makefile("rb") as orders,
        closing(_Writing()) as writing,
        suppress(BrokenPipeError, ConnectionResetError),  # the daemon has gone: nobody is left to answer
    ):
        while (order := _read(orders)) is not None:
            answer = writing.answer(order)
            if answer is not None:
                pipe.sendall(framed(answer))


def _read(orders: BufferedReader) -> list[Any] | None:
    """The next order; None if the pipe was closed, in the middle of one or not."""
    head = orders.read(LENGTH)
    size = int.from_bytes(head, "little")
    body = orders.read(size) if len(head) == LENGTH else b""
    if len(head) < LENGTH or len(body) < size:
        return None
    order: list[Any] = msgpack.unpackb(body)
    return order


def _opened(path: str, epoch: str) -> JournalWriter:
    """The journal that the daemon had. Raises JournalError where it is not: nothing is begun in its place."""
    if not os.path.lexists(path):
        raise JournalError(path, "was deleted while the daemon was using it")
    journal = JournalWriter(path)
    if journal.epoch != epoch:
        journal.close()
        raise JournalError(path, "was replaced while the daemon was using it")
    return journal


class _Writing:
    """The journal, once it is open, and what there is of the next batch."""

    def __init__(self) -> None:
        self._journal: JournalWriter | None = None
        self._batch: list[PackedWrite] = []

    def answer(self, order: list[Any]) -> list[Any] | None:
        """Do it; what is to be said of it, if anything."""
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
        """Whether all of it is done, and what came back."""
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
        self._batch = []  # of one that was not sent to its end
        return True, getattr(self._journal, name)(*about)

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
