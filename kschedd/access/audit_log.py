"""The audit log's file: JSON lines, appended in a thread while the event loop continues, rotated by size.

Events wait in a bounded queue. If the file cannot be written (a full disk), or events arrive faster than they can be
written, events are dropped and counted. Log messages report when dropping begins and ends. The daemon continues in
either case. A line is written either completely or not at all. If the file was moved, a new file is created.

Owns: the file. `run` ends after `close`, once all waiting events are written.
"""

import errno
import json
import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import structlog
import trio

from kschedd.access.audit import AuditedCall, AuditOutcome, audit_event
from kschedd.access.errors import AccessError

MAX_SIZE_MIB: Final = 100
MAX_BACKUPS: Final = 10
WAITING: Final = 10_000
_AT_ONCE: Final = 1_000  # lines per write


@attrs.define(eq=False)
class AuditFile:
    """A file that grows to `max_bytes` and is then renamed to FILE.1, FILE.1 to FILE.2, up to `backups` files."""

    path: Path
    max_bytes: int = MAX_SIZE_MIB << 20
    backups: int = MAX_BACKUPS
    _descriptor: int = attrs.field(default=-1, init=False)

    def open(self) -> None:
        """Open the file. Raises OSError."""
        self.close()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        self._descriptor = os.open(self.path, flags, 0o600)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def write(self, lines: Sequence[bytes]) -> None:
        """Append either all lines or no line. Raises OSError."""
        if self._moved():
            self.open()
        size, data = os.fstat(self._descriptor).st_size, b"".join(lines)
        if size and size + len(data) > self.max_bytes:
            self._rotate()
            size = 0
        done = 0
        try:
            while done < len(data):
                done += os.write(self._descriptor, data[done:])
        except OSError:
            if done:
                os.ftruncate(self._descriptor, size)
            raise

    def _moved(self) -> bool:
        if self._descriptor < 0:
            return True
        try:
            there, own = os.stat(self.path), os.fstat(self._descriptor)
        except FileNotFoundError:
            return True
        return (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino)

    def _rotate(self) -> None:
        for number in range(self.backups - 1, 0, -1):
            if (older := self._backup(number)).exists():
                older.replace(self._backup(number + 1))
        if self.backups:
            self.path.replace(self._backup(1))
        else:
            self.path.unlink()
        self.open()

    def _backup(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


@attrs.define(eq=False)
class AuditLog:
    """The queue and writer of audit events.

    `written` and `dropped` count events since the start; `failing` is the reason why no event can currently be written.
    """

    file: AuditFile
    now_s: Callable[[], float] = time.time
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())
    most_waiting: int = WAITING
    log: Any = attrs.field(factory=lambda: structlog.get_logger("kschedd.audit"))
    written: int = 0
    dropped: int = 0
    failing: str = ""
    _waiting: deque[tuple[AuditedCall, AuditOutcome, float]] = attrs.field(factory=deque, init=False)
    _wake: trio.Event = attrs.field(factory=trio.Event, init=False)
    _most: int = attrs.field(default=0, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    def note(self, call: AuditedCall, outcome: AuditOutcome) -> None:
        """Queue an event to be written soon."""
        if len(self._waiting) >= self.most_waiting:
            self._drop(1, "more is written than it takes")
            return
        self._waiting.append((call, outcome, self.now_s()))
        self._most = max(self._most, len(self._waiting))
        self._wake.set()

    def used(self) -> tuple[int, int]:
        """Return the number of waiting events, and the largest number so far."""
        return len(self._waiting), self._most

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write events until `close`. Report "started" once the file exists.

        Raises AccessError if the file cannot be created.
        """
        try:
            await trio.to_thread.run_sync(self.file.open)
        except OSError as wrong:
            raise AccessError(f"{self.file.path}: cannot be written: {wrong.strerror}", "--audit-log") from wrong
        task_status.started()
        try:
            while self._waiting or not self._closed:
                if not self._waiting:
                    self._wake = trio.Event()
                    await self._wake.wait()
                    continue
                taken = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
                try:
                    await trio.to_thread.run_sync(self._write, taken)
                except OSError as wrong:
                    self._drop(len(taken), wrong.strerror or errno.errorcode.get(wrong.errno or 0, str(wrong)))
                else:
                    self._wrote(len(taken))
        finally:
            self.file.close()

    def _write(self, taken: Sequence[tuple[AuditedCall, AuditOutcome, float]]) -> None:
        """Write events to the file. Called in a thread. Raises OSError."""
        events = (audit_event(call, outcome, ended_s, self.new_id()) for call, outcome, ended_s in taken)
        self.file.write([json.dumps(event, ensure_ascii=False).encode("utf-8", "replace") + b"\n" for event in events])

    def _wrote(self, count: int) -> None:
        self.written += count
        if self.failing:
            self.failing = ""
            self.log.warning("audit_log", what="it is written again", dropped=self.dropped)

    def _drop(self, count: int, why: str) -> None:
        self.dropped += count
        if not self.failing:
            self.log.error("audit_log", what="writes are not logged", file=str(self.file.path), why=why)
        self.failing = why
