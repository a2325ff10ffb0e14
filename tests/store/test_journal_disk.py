"""Tests of the journal on a disk that is full, fails, writes partially, or is removed.

Real disks confirm the results of the fake disk: a limit on the size of files, and a full file system.
"""

import errno
import os
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from kschedd.store.journal.disk import RealDisk
from kschedd.store.journal.journal import Journal, JournalError
from kschedd.store.store import Store
from tests.store.descriptors import open_files
from tests.store.manifests import Clock, config_map


@attrs.define
class FailingDisk(RealDisk):
    """The real disk, until a fault is set: an errno, or the number of bytes that a write accepts."""

    error: int = 0
    takes: int | None = None
    head_error: int = 0  # of writes no larger than those of the head

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        self._fail()
        if self.head_error and len(data) <= 512:
            raise OSError(self.head_error, os.strerror(self.head_error))
        return os.pwrite(descriptor, data if self.takes is None else data[: self.takes], offset)

    def fdatasync(self, descriptor: int) -> None:
        self._fail()
        os.fdatasync(descriptor)

    def _fail(self) -> None:
        if self.error:
            raise OSError(self.error, os.strerror(self.error))


@attrs.frozen(eq=False)
class Kept:
    """A store and its journal; `write` makes one change as the daemon does."""

    path: Path
    disk: FailingDisk
    journal: Journal
    store: Store

    def write(self, name: str, **data: str) -> None:
        self.store.create(config_map(name, **data))
        try:
            self.journal.append(self.store.written_after(self.journal.version))
        except JournalError:
            self.store.roll_back(self.journal.version)
            raise

    def names(self) -> list[str]:
        """Open a copy of the journal and return the names of its objects."""
        copy = self.path.parent.with_name("copy")
        shutil.copytree(self.path.parent, copy)
        journal = Journal(copy / self.path.name)
        store = journal.load(now=Clock())
        journal.close()
        shutil.rmtree(copy)
        assert store is not None
        assert store.version == self.store.version
        return [obj.name for obj in store.list("ConfigMap")]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    path, disk, store = tmp_path / "state" / "journal.db", FailingDisk(), Store(now=Clock(), seed=1)
    path.parent.mkdir()
    store.log.show(0)
    journal = Journal(path, disk=disk)
    journal.append(store.written_after(0))
    store.log.show(store.version)
    yield Kept(path, disk, journal, store)
    journal.close()


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Limit the size of files for this process, so that writes to a real disk fail with EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def faulty(kept: Kept, **fault: int) -> Iterator[None]:
    for name, value in fault.items():
        setattr(kept.disk, name, value)
    yield
    kept.disk.error, kept.disk.head_error, kept.disk.takes = 0, 0, None


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        pytest.param(lambda kept: faulty(kept, error=errno.ENOSPC), "No space left on device", id="full"),
        pytest.param(lambda kept: faulty(kept, error=errno.EIO), "Input/output error", id="failing"),
        pytest.param(lambda kept: faulty(kept, takes=100), "100 of 512 bytes written", id="short-write"),
        pytest.param(lambda kept: no_file_above(600), r"cannot be written: disk I/O error", id="real-limit-on-files"),
    ],
)
def test_what_a_faulty_disk_did_not_keep_is_not_there_and_it_goes_on_after(
    kept: Kept, fault: Callable[[Kept], "contextmanager[None]"], words: str
) -> None:
    kept.write("before")
    with fault(kept):
        for _ in range(2):
            with pytest.raises(JournalError, match=words):
                kept.write("meanwhile", text="x" * 100_000)
        with pytest.raises(JournalError):
            kept.journal.repair()
    kept.journal.repair()
    assert kept.names() == ["before"]
    kept.write("after", text="x" * 100_000)
    assert kept.names() == ["after", "before"]


def test_what_cannot_be_flushed_at_a_start_is_not_served(kept: Kept) -> None:
    kept.write("before")
    with faulty(kept, error=errno.EIO), pytest.raises(JournalError, match="wal cannot be flushed: Input/output"):
        Journal(kept.path, disk=kept.disk)
    Journal(kept.path, disk=kept.disk).close()


def test_a_head_that_was_written_by_a_failed_write_is_not_ahead_of_the_journal_when_a_repair_is_broken_off(
    kept: Kept,
) -> None:
    kept.write("before")
    with faulty(kept, takes=109), pytest.raises(JournalError, match="109 of 512 bytes written"):
        kept.write("meanwhile")  # the whole record is in these 109 bytes
    with faulty(kept, head_error=errno.EIO), pytest.raises(JournalError, match="Input/output error"):
        kept.journal.repair()
    copy = kept.path.parent.with_name("killed")
    shutil.copytree(kept.path.parent, copy)
    opened = Journal(copy / kept.path.name)
    assert opened.version in (kept.journal.version, kept.journal.version + 1)
    opened.close()
    kept.journal.repair()
    kept.write("after")
    assert kept.names() == ["after", "before"]


def test_files_deleted_under_the_journal_are_missed_and_those_moved_away_are_found_again(kept: Kept) -> None:
    kept.write("before")
    state, away = kept.path.parent, kept.path.parent.with_name("away")
    state.rename(away)
    for _ in range(2):
        with pytest.raises(JournalError, match=r"journal\.db was deleted or replaced while the daemon was using it"):
            kept.write("meanwhile")
    with pytest.raises(JournalError, match="was deleted or replaced"):
        kept.journal.repair()
    away.rename(state)
    kept.journal.repair()
    kept.write("after")
    assert kept.names() == ["after", "before"]
    shutil.rmtree(state)
    with pytest.raises(JournalError, match="was deleted or replaced"):
        kept.write("gone")


@pytest.mark.parametrize("file", ["journal.db-wal", "journal.db-head"])
def test_a_single_file_replaced_under_the_journal_is_missed(kept: Kept, file: str) -> None:
    path = kept.path.with_name(file)
    data = path.read_bytes()
    path.unlink()
    path.with_name("other").write_bytes(data)
    path.with_name("other").rename(path)
    with pytest.raises(JournalError, match=f"{file} was deleted or replaced"):
        kept.write("meanwhile")


@pytest.mark.parametrize("file", ["journal.db", "journal.db-wal", "journal.db-head"])
def test_a_file_cut_short_under_the_journal_is_missed_before_a_write_is_answered(kept: Kept, file: str) -> None:
    kept.write("before")
    path = kept.path.with_name(file)
    whole = path.read_bytes()
    os.truncate(path, len(whole) // 2)
    for _ in range(2):
        with pytest.raises(JournalError, match=f"{file} was truncated while the daemon was using it"):
            kept.write("meanwhile")
        with pytest.raises(JournalError, match="was truncated"):
            kept.journal.repair()
    with pytest.raises(JournalError, match="was truncated"):
        kept.journal.compact_some(10)
    path.write_bytes(whole)
    kept.journal.repair()
    kept.write("after")
    assert kept.names() == ["after", "before"]


def test_a_journal_that_shrinks_by_itself_is_whole(kept: Kept) -> None:
    for number in range(20):
        kept.write(f"large-{number}", text="x" * 200_000)
        kept.store.delete("ConfigMap", "default", f"large-{number}")
    kept.write("last")
    large = kept.path.stat().st_size
    while kept.journal.compact_some(5):
        pass
    while kept.journal.shrink_some(100):
        pass
    kept.write("small", text="x" * 500_000)  # so long that SQLite copies its log into the file
    kept.write("after")
    kept.journal.compact()
    kept.write("end")
    assert kept.path.stat().st_size < large
    assert kept.names() == ["after", "end", "last", "small"]


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-head"])
def test_a_directory_in_the_place_of_a_file_is_refused_at_once_and_left_as_it_is(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "journal.db"
    Journal(path).close()
    there = path.with_name(path.name + suffix)
    there.unlink(missing_ok=True)
    there.mkdir(mode=0o755)
    there.joinpath("inside").touch()
    with pytest.raises(JournalError, match=rf"cannot be opened: {there.name} is not a regular file"):
        Journal(path)
    assert stat.S_IMODE(there.stat().st_mode) == 0o755


def test_no_file_of_the_journal_is_for_others_to_read_whatever_the_folder_and_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    tmp_path.chmod(0o755)
    before = os.umask(0)
    try:
        path.touch(0o644)
        journal = Journal(path)
    finally:
        os.umask(before)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    journal.close()
    assert modes == dict.fromkeys(("journal.db", "journal.db-wal", "journal.db-shm", "journal.db-head"), 0o600)


ON_A_FULL_DISK = """
import sys
from pathlib import Path
from kschedd.store.journal.disk import RealDisk
from kschedd.store.journal.journal import Journal, JournalError
from kschedd.store.store import Store
folder = Path(sys.argv[1])
ballast = folder / "ballast"
ballast.write_bytes(bytes(1 << 20))
store = Store(seed=1)
store.log.show(0)
journal = Journal(folder / "journal.db")
number, said = 0, []
def write():
    global number
    number += 1
    data = {"text": "x" * 9000}
    store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}, "data": data})
    try:
        journal.append(store.written_after(journal.version))
    except JournalError as failure:
        store.roll_back(journal.version)
        return failure.why
while not (why := write()):
    pass
said.append(why)
try:
    journal.repair()
except JournalError as failure:
    said.append(failure.why)
ballast.unlink()
journal.repair()
said.append(write())
journal.close()
journal = Journal(folder / "journal.db")
again = journal.load()
assert [obj.raw for obj in again.list("ConfigMap")] == [obj.raw for obj in store.list("ConfigMap")]
assert again.version == store.version
print(*said, sep="\\n")
"""


def test_a_file_system_that_is_full_is_as_the_fake_has_it(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=8m none {tmp_path}"
    enter = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*enter, mount], capture_output=True).returncode:
        pytest.skip("mounting a file system of one's own is not allowed here")
    command = [*enter, f'{mount} && exec "$@"', "sh", sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path)]
    root = Path(__file__).parents[2]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)})
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "cannot be written: database or disk is full",
        "cannot be written: No space left on device",
        "None",
    ]


def test_files_are_private_and_operations_reach_the_disk(tmp_path: Path) -> None:
    disk, path = RealDisk(), tmp_path / "a"
    assert disk.status(path) is None
    descriptor = disk.open(path)
    assert (disk.pwrite(descriptor, b"abc", 1), disk.pread(descriptor, 2, 2)) == (3, b"bc")
    disk.close(descriptor)
    assert (stat.S_IMODE(path.stat().st_mode), disk.read(path)) == (0o600, b"\0abc")
    path.chmod(0o644)
    disk.make_private(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    disk.copy(path, tmp_path / "copy")
    disk.link(path, tmp_path / "link")
    assert disk.status(tmp_path / "link") == disk.status(path) != disk.status(tmp_path / "copy")
    disk.replace(tmp_path / "copy", path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "link"]
    for _ in range(2):
        disk.unlink(path)
    folder = disk.status(tmp_path)
    assert folder is not None
    assert not folder.is_regular


def test_a_flush_reaches_the_file_and_its_folder_and_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flushed = tmp_path / "a", []
    path.touch()
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: flushed.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    RealDisk().flush(path)
    assert flushed == [str(path), str(tmp_path)]
    assert not open_files(tmp_path)


def test_a_new_database_is_private_and_reads_invalid_text(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db = RealDisk().connect(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    db.execute("CREATE TABLE t (x TEXT)")
    db.execute("INSERT INTO t VALUES (CAST(x'61ff' AS TEXT))")
    assert list(db.execute("SELECT x FROM t")) == [("a\ufffd",)]
    db.close()


def test_a_database_is_used_by_several_threads(tmp_path: Path) -> None:
    db = RealDisk().connect(tmp_path / "a.db")
    with ThreadPoolExecutor(1) as thread:
        thread.submit(db.execute, "CREATE TABLE t (x)").result()
    assert list(db.execute("SELECT name FROM sqlite_master")) == [("t",)]
    db.close()
