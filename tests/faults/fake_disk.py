"""A disk in memory that can fail.

It implements kschedd.store.journal.disk.Disk and behaves as real disks do.

Written data can be read at once, and survives a power loss once it was flushed. Until then each sector of each write
may or may not be there after a power loss (torn pages), in any order. For created, linked, replaced and removed names,
a prefix of the operations survives. A killed process loses nothing that it has written.

Faults are set as attributes. `chance` makes every random choice, so that its seed determines all behavior. `kill_after`
counts operations: the last one is done in part, and from then on every call fails until `restart`.
"""

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

import attrs

from kschedd.store.journal.disk import Database, FileStatus
from tests.faults.sqlite_vfs import ApswDatabase, Vfs

SECTOR = 512


@attrs.define(eq=False)
class File:
    """`content` is what is read; `safe` what is there after the power was lost, `pending` what may be."""

    number: int
    content: bytearray = attrs.field(factory=bytearray)
    safe: bytes = b""
    pending: list[tuple[int, bytes | None]] = attrs.field(factory=list)  # (offset, data), or (size, None): cut

    def write(self, data: bytes, offset: int) -> None:
        self.pending.append((offset, data))
        _put(self.content, data, offset)

    def truncate(self, size: int) -> None:
        self.pending.append((size, None))
        _cut(self.content, size)

    def flush(self) -> None:
        self.safe, self.pending = bytes(self.content), []

    def lose_power(self, chance: random.Random) -> None:
        content = bytearray(self.safe)
        for offset, data in self.pending:
            if data is None:
                if chance.random() < 0.5:
                    _cut(content, offset)
                continue
            kept = chance.random()  # often all or nothing of a write, sometimes a part
            start = 0
            while start < len(data):
                end = min(len(data), (offset + start) // SECTOR * SECTOR + SECTOR - offset)
                if kept < 0.4 or (kept < 0.7 and chance.random() < 0.5):
                    _put(content, data[start:end], offset + start)
                start = end
        self.content = content
        self.flush()


def _put(content: bytearray, data: bytes, offset: int) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _cut(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


@attrs.define(eq=False)
class FakeDisk:
    chance: random.Random
    error: int = 0  # an errno: writes and flushes fail with it
    short_writes: float = 0.0  # how often a write takes only a part
    capacity: int | None = None  # bytes; a write beyond it: ENOSPC
    lies: bool = False  # it says that it has flushed, and has not
    kill_after: int | None = None  # operations that change something
    on_kill: Callable[[], None] = lambda: None
    dead: bool = False  # the process that uses it was killed
    closing: bool = False  # a database on it is being closed
    generation: int = 0  # of the process that uses it
    operations: int = 0
    names: dict[Path, File] = attrs.field(factory=dict)
    _safe_names: dict[Path, File] = attrs.field(factory=dict)
    _changed_names: list[dict[Path, File]] = attrs.field(factory=list)  # after each change since the last flush
    _open: dict[int, File] = attrs.field(factory=dict)
    _number: int = 0
    _vfs: "Vfs | None" = None

    # --- the Protocol --------------------------------------------------------------------------------------------

    def connect(self, path: Path) -> Database:
        if self._vfs is None:
            self._vfs = Vfs(f"fake-{id(self)}", self)
        return ApswDatabase(path, self._vfs)

    def status(self, path: Path) -> FileStatus | None:
        file = self.names.get(path)
        return None if file is None else FileStatus((1, file.number), len(file.content), True)

    def make_private(self, path: Path) -> None:
        self._living()
        self._named(path)

    def open(self, path: Path) -> int:
        self._living()
        file = self.create(path)
        self._number += 1
        self._open[self._number] = file
        return self._number

    def close(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)

    def pread(self, descriptor: int, length: int, offset: int) -> bytes:
        return bytes(self._file(descriptor).content[offset : offset + length])

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        return self.write(self._file(descriptor), data, offset)

    def fdatasync(self, descriptor: int) -> None:
        self.flush_file(self._file(descriptor))

    def flush(self, path: Path) -> None:
        self._living()
        self.flush_file(self._named(path))

    def read(self, path: Path) -> bytes:
        self._living()
        return bytes(self._named(path).content)

    def copy(self, source: Path, target: Path) -> None:
        content = self.read(source)
        copied = File(self._next_number())
        self._rename({target: copied})
        self.write(copied, content, 0)

    def link(self, source: Path, target: Path) -> None:
        self._living()
        file = self._named(source)
        if target in self.names:
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
        self._rename({target: file})

    def replace(self, source: Path, target: Path) -> None:
        self._living()
        file = self._named(source)
        self._rename({source: None, target: file})

    def unlink(self, path: Path) -> None:
        self._living()
        if path in self.names:
            self._rename({path: None})

    # --- what SQLite uses as well --------------------------------------------------------------------------------

    def create(self, path: Path) -> File:
        if path not in self.names:
            self._rename({path: File(self._next_number())})
        return self.names[path]

    def write(self, file: File, data: bytes, offset: int) -> int:
        """Write a prefix of the data, or all of it, and return the number of bytes written."""
        taken = len(data)
        if self.short_writes and self.chance.random() < self.short_writes:
            taken = self.chance.randrange(len(data))
        dies = self._count()
        if dies:
            taken = self.chance.randrange(len(data) + 1)
        elif self.error:
            raise OSError(self.error, os.strerror(self.error))
        if self.capacity is not None:
            grows = max(0, offset + taken - len(file.content))
            if grows and self.used + grows > self.capacity:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if taken:
            file.write(data[:taken], offset)
        if dies:
            self.kill()
            self._living()
        return taken

    def truncate(self, file: File, size: int) -> None:
        self._change()
        file.truncate(size)

    def flush_file(self, file: File) -> None:
        self._change()
        if not self.lies:
            file.flush()
            self._safe_names, self._changed_names = dict(self.names), []

    # --- what tests do to it -------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End the process: its later calls change nothing."""
        self.dead, self.kill_after = True, None
        self.on_kill()

    def restart(self, *, power_lost: bool) -> None:
        """Make the disk healthy for the next process; the files stay as the last process left them."""
        self.dead, self.kill_after, self.error, self.capacity, self.short_writes = False, None, 0, None, 0.0
        self.generation += 1
        self._open.clear()
        if power_lost:
            states = [self._safe_names, *self._changed_names]
            self.names = dict(self.chance.choice(states))
            self._safe_names, self._changed_names = dict(self.names), []
            for file in {file.number: file for file in self.names.values()}.values():
                file.lose_power(self.chance)

    def flip_bit(self) -> str:
        """Damage one bit of what is on the disk; where it was."""
        files = [(path, file) for path, file in self.names.items() if file.content]
        if not files:
            return "nothing there"
        path, file = self.chance.choice(files)
        at = self.chance.randrange(len(file.content))
        file.content[at] ^= 1 << self.chance.randrange(8)
        file.flush()
        return f"{path.name} at {at}"

    @property
    def used(self) -> int:
        """Bytes of all files."""
        return sum(len(each.content) for each in {file.number: file for file in self.names.values()}.values())

    def close_all(self) -> None:
        if self._vfs is not None:
            self._vfs.unregister()
            self._vfs = None

    # --- internals -----------------------------------------------------------------------------------------------

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _file(self, descriptor: int) -> File:
        self._living()
        if descriptor not in self._open:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._open[descriptor]

    def _named(self, path: Path) -> File:
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self.names[path]

    def _rename(self, changed: "dict[Path, File | None]") -> None:
        self._change()
        for path, file in changed.items():
            if file is None:
                del self.names[path]
            else:
                self.names[path] = file
        self._changed_names.append(dict(self.names))

    def _change(self) -> None:
        """Before an operation that is done wholly or not at all."""
        if self._count():
            self.kill()
            self._living()
        if self.error:
            raise OSError(self.error, os.strerror(self.error))

    def _count(self) -> bool:
        """Count an operation; whether the process is killed within it."""
        self._living()
        self.operations += 1
        if self.kill_after is None:
            return False
        self.kill_after -= 1
        return self.kill_after <= 0

    def _living(self) -> None:
        if self.dead:
            raise OSError(errno.EIO, "the process was killed")
