"""Tests that a journal's head has the last complete record, and that a journal which differs from it is rejected."""

import errno
import os
import stat
from pathlib import Path

import attrs
import pytest

from kschedd.store.journal import head as journal_head
from kschedd.store.journal.disk import RealDisk
from kschedd.store.journal.head import FoundHead, Head, HeadFile, head_path, read_head
from kschedd.store.journal.journal import Journal, JournalDamaged, JournalError
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map

EPOCH = "0123456789abcdef0123456789abcdef"
SLOT, COPY, RECORD = 512, 256, 64  # bytes: a slot has two copies of a record with its checksum


def head(version: int) -> Head:
    return Head(version, 7 * version, EPOCH)


@attrs.define(eq=False)
class Disk(RealDisk):
    flushes: int = 0
    shorter: int = 0  # number of bytes that each write omits
    error: int = 0  # of each write and flush

    def fdatasync(self, descriptor: int, /) -> None:
        self.flushes += 1
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        super().fdatasync(descriptor)

    def pwrite(self, descriptor: int, data: bytes, offset: int, /) -> int:
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        return super().pwrite(descriptor, data[: len(data) - self.shorter], offset)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "j-head"


def written(path: Path, *versions: int) -> None:
    file = HeadFile(path)
    for version in versions:
        file.write(head(version))
    file.close()


def test_there_is_no_head_before_one_is_written(path: Path) -> None:
    assert read_head(path) is None
    HeadFile(path).close()
    assert path.stat().st_size == 0
    assert read_head(path) is None


@pytest.mark.parametrize("count", range(1, 6))
def test_the_last_record_is_the_head(path: Path, count: int) -> None:
    written(path, *range(10, 10 + count))
    assert read_head(path) == FoundHead(head(9 + count), is_last=True)


@pytest.mark.parametrize("count", range(1, 5))
def test_records_go_on_after_the_file_was_opened_again(path: Path, count: int) -> None:
    written(path, *range(count))
    written(path, 50)
    assert read_head(path) == FoundHead(head(50), is_last=True)
    written(path, 3)
    assert read_head(path) == FoundHead(head(3), is_last=True), "the last one, not that of the highest version"


def test_a_byte_that_is_damaged_anywhere_in_one_copy_changes_nothing(path: Path) -> None:
    written(path, 1, 2)
    whole = path.read_bytes()
    for slot in (0, SLOT):
        for copy in (0, COPY):
            for at in range(RECORD):
                harmed = bytearray(whole)
                harmed[slot + copy + at] ^= 1
                path.write_bytes(harmed)
                assert read_head(path) == FoundHead(head(2), is_last=True), (slot, copy, at)


def test_where_a_slot_is_damaged_the_other_one_is_the_head_and_may_not_be_the_last(path: Path) -> None:
    written(path, 1, 2)
    whole = path.read_bytes()
    for slot, version in ((0, 1), (SLOT, 2)):
        harmed = bytearray(whole)
        harmed[slot + 20] ^= 1
        harmed[slot + COPY + 20] ^= 1
        path.write_bytes(harmed)
        assert read_head(path) == FoundHead(head(version), is_last=False)
    path.write_bytes(bytes(len(whole)))
    assert read_head(path) is None


def test_a_record_goes_on_counting_from_the_slot_that_is_left(path: Path) -> None:
    written(path, 1, 2, 3)
    harmed = bytearray(path.read_bytes())
    harmed[SLOT : 2 * SLOT] = bytes(SLOT)  # the slot of the third and last record
    path.write_bytes(harmed)
    written(path, 4)
    assert read_head(path) == FoundHead(head(4), is_last=True)


def test_a_record_of_another_format_is_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(journal_head, "_MAGIC", b"kschedd1")
        written(path, 1, 2)
    assert read_head(path) is None


def test_a_head_that_cannot_be_read_or_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot be read: Is a directory"):
        read_head(tmp_path)
    with pytest.raises(JournalError, match="cannot be written: Is a directory"):
        HeadFile(tmp_path)


def test_a_write_that_is_taken_in_part_is_an_error_and_is_made_again_in_the_same_slot(path: Path) -> None:
    disk = Disk()
    file = HeadFile(path, disk)
    file.write(head(1))
    disk.shorter = 12
    with pytest.raises(JournalError, match="cannot be written: only 500 of 512 bytes written"):
        file.write(head(2))
    disk.shorter, disk.error = 0, errno.EIO
    with pytest.raises(JournalError, match="cannot be written: Input/output error"):
        file.write(head(2))
    disk.error = 0
    file.write(head(3))
    file.close()
    assert path.stat().st_size == 2 * SLOT
    assert read_head(path) == FoundHead(head(3), is_last=True)
    assert (path.stat().st_mode & 0o777) == 0o600


def test_the_head_is_flushed_once_a_second(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(journal_head.time, "monotonic", lambda: now)
    disk = Disk()
    file = HeadFile(path, disk)
    assert file.flushed
    flushes = []
    for now in (100.0, 101.0, 101.5, 101.75, 102.5, 102.75):
        file.write(head(int(now)))
        flushes.append((disk.flushes, file.flushed))
    assert flushes == [(0, False), (0, False), (1, True), (1, False), (1, False), (2, True)]
    file.write(head(200))
    file.sync()
    assert (disk.flushes, file.flushed) == (3, True)
    now = 103.75
    file.write(head(201))
    assert not file.flushed, "it is a second since `sync`"
    file.close()


def test_a_probe_finds_whether_there_is_room_and_leaves_nothing(path: Path) -> None:
    disk = Disk()
    file = HeadFile(path, disk)
    file.probe()
    assert disk.flushes == 1
    disk.shorter = 1
    with pytest.raises(JournalError, match="not enough free space on the disk"):
        file.probe()
    disk.shorter, disk.error = 0, errno.ENOSPC
    with pytest.raises(JournalError, match="cannot be written: No space left on device"):
        file.probe()
    file.close()
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_head_is_for_its_owner_alone_and_its_file_is_closed_with_it(path: Path) -> None:
    path.touch(0o644)
    file = HeadFile(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file._file)


def test_a_head_that_cannot_be_flushed_is_an_error(path: Path) -> None:
    disk = Disk()
    file = HeadFile(path, disk)
    file.write(head(1))
    disk.error = errno.EIO
    with pytest.raises(JournalError, match="cannot be written: Input/output error"):
        file.sync()
    assert not file.flushed
    file.close()


def test_a_probe_writes_nothing_into_a_file_that_its_name_leads_to(path: Path, tmp_path: Path) -> None:
    kept, scratch = tmp_path / "kept", path.with_name(path.name + "-probe")
    kept.write_text("kept")
    scratch.symlink_to(kept)
    file = HeadFile(path)
    file.probe()
    file.close()
    assert kept.read_text() == "kept"
    assert not scratch.is_symlink()


# -- a journal and its head -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        pytest.param({}, "", id="as-it-was-written"),
        pytest.param({"chain": 1}, "version {last} differs from the version that was written", id="another-chain"),
        pytest.param(
            {"version": -1},
            "version {before} differs from the version that was written",
            id="a-chain-of-a-later-version",
        ),
        pytest.param(
            {"version": 1}, "ends at version {last}, but was written up to version {after}", id="a-later-version"
        ),
        pytest.param({"epoch": EPOCH}, "does not belong to journal.db-head", id="another-history"),
    ],
)
def test_a_journal_that_differs_from_its_head_is_refused(
    tmp_path: Path, changes: dict[str, int | str], refusal: str, compacted: bool
) -> None:
    file = tmp_path / "journal.db"
    store, journal = Store(now=Clock(), seed=3), Journal(file)
    for number in range(2):
        store.create(config_map(f"c{number}"))
    journal.append(store.written_after(0))
    if compacted:
        journal.compact()
    journal.close()
    found = read_head(head_path(file))
    assert found is not None
    assert (found.head.version, found.is_last) == (store.version, True)
    last = found.head
    harmed = Head(
        last.version + int(changes.get("version", 0)),
        last.chain ^ int(changes.get("chain", 0)),
        str(changes.get("epoch", last.epoch)),
    )
    rewritten = HeadFile(head_path(file))
    rewritten.write(harmed)
    rewritten.close()
    if refusal and not (compacted and harmed.version < last.version):
        with pytest.raises(
            JournalDamaged, match=refusal.format(last=store.version, before=store.version - 1, after=store.version + 1)
        ):
            Journal(file)
    else:  # versions before the snapshot cannot be compared
        Journal(file).close()
