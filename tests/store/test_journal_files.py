"""Tests of a journal's files: their permissions, the files that belong together, and changes by others while open."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from kschedd.store.journal.disk import Database, RealDisk
from kschedd.store.journal.files import OpenFiles, beside, connect, flush_log, reject_remains
from kschedd.store.journal.format import JournalError

SUFFIXES = ("", "-wal", "-shm", "-head")


@attrs.define
class RecordingDisk(RealDisk):
    """A disk that records what is flushed, or fails with an errno."""

    error: int = 0
    flushed: list[str] = attrs.field(factory=list)

    def make_private(self, path: Path) -> None:
        self._fail()
        super().make_private(path)

    def flush(self, path: Path) -> None:
        self._fail()
        self.flushed.append(path.name)

    def _fail(self) -> None:
        if self.error:
            raise OSError(self.error, os.strerror(self.error))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def refusal(work: Callable[[], object]) -> str:
    with pytest.raises(JournalError) as refused:
        work()
    return str(refused.value)


# -- opening ---------------------------------------------------------------------------------------------------------


def test_all_files_are_readable_only_by_their_owner(path: Path) -> None:
    for suffix in SUFFIXES:
        beside(path, suffix).touch()
        beside(path, suffix).chmod(0o666)
    db: Database = connect(path)
    assert [stat.S_IMODE(beside(path, suffix).stat().st_mode) for suffix in SUFFIXES] == [0o600] * 4
    db.close()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_not_regular_is_rejected_before_anything_is_changed(path: Path, suffix: str) -> None:
    beside(path, suffix).mkdir()
    assert refusal(lambda: connect(path)) == (
        f"{path}: cannot be opened: journal.db{suffix} is not a regular file; remove it"
    )
    assert [each.name for each in path.parent.iterdir()] == [f"journal.db{suffix}"]


def test_a_file_whose_mode_cannot_be_changed_is_rejected(path: Path) -> None:
    path.touch()
    why = f"{path}: cannot be opened: Operation not permitted"
    assert refusal(lambda: connect(path, RecordingDisk(errno.EPERM))) == why


def test_a_folder_that_does_not_exist_is_rejected(path: Path) -> None:
    missing = path.parent / "missing" / "journal.db"
    assert refusal(lambda: connect(missing)) == f"{missing}: cannot be opened: No such file or directory"


@pytest.mark.parametrize(
    ("content", "flushed"),
    [
        pytest.param(None, [], id="no-log"),
        pytest.param(b"", [], id="empty-log"),
        pytest.param(b"x", ["journal.db-wal"], id="log"),
    ],
)
def test_the_log_that_a_killed_process_left_is_flushed(path: Path, content: bytes | None, flushed: list[str]) -> None:
    if content is not None:
        beside(path, "-wal").write_bytes(content)
    disk = RecordingDisk()
    flush_log(path, disk)
    assert disk.flushed == flushed


def test_a_log_that_cannot_be_flushed_is_not_used(path: Path) -> None:
    beside(path, "-wal").write_bytes(b"x")
    why = f"{path}: cannot be opened: journal.db-wal cannot be flushed: Input/output error"
    assert refusal(lambda: flush_log(path, RecordingDisk(errno.EIO))) == why


# -- files that belong together --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("journal", "left", "why"),
    [
        pytest.param(None, ["-head"], "is missing, but journal.db-head exists", id="head-alone"),
        pytest.param(b"", ["-shm"], "is empty, but journal.db-shm exists", id="beside-an-empty-journal"),
        pytest.param(None, ["-wal", "-shm"], "is missing, but journal.db-wal and journal.db-shm exist", id="two-files"),
    ],
)
def test_files_without_their_journal_are_damage(path: Path, journal: bytes | None, left: list[str], why: str) -> None:
    if journal is not None:
        path.write_bytes(journal)
    for suffix in left:
        beside(path, suffix).write_bytes(b"x")
    assert refusal(lambda: reject_remains(path)) == (
        f"{path}: {why}: restore a copy of the whole state directory; for a new cluster, give another directory or "
        "remove these files"
    )


@pytest.mark.parametrize(
    ("journal", "left"), [pytest.param(b"x", b"x", id="journal"), pytest.param(None, b"", id="empty-files")]
)
def test_files_with_their_journal_and_empty_files_are_none(path: Path, journal: bytes | None, left: bytes) -> None:
    if journal is not None:
        path.write_bytes(journal)
    for suffix in SUFFIXES[1:]:
        beside(path, suffix).write_bytes(left)
    reject_remains(path)


# -- while open ------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(path: Path) -> OpenFiles:
    for suffix in SUFFIXES:
        beside(path, suffix).write_bytes(b"four")
    return OpenFiles(path, RealDisk())


def replaced(file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(file.read_bytes())
    other.replace(file)


@pytest.mark.parametrize("suffix", ["", "-wal", "-head"])
@pytest.mark.parametrize(
    ("change", "what"),
    [
        pytest.param(Path.unlink, "deleted or replaced", id="deleted"),
        pytest.param(replaced, "deleted or replaced", id="replaced"),
        pytest.param(lambda file: os.truncate(file, 3), "truncated", id="truncated"),
    ],
)
def test_a_change_by_others_is_reported(
    path: Path, files: OpenFiles, suffix: str, change: Callable[[Path], None], what: str
) -> None:
    assert files.fault() is None
    change(beside(path, suffix))
    expected = f"{path}: journal.db{suffix} was {what} while the daemon was using it"
    assert str(files.fault()) == expected
    noted = files.note_sizes()
    assert str(noted) == (expected if what == "deleted or replaced" else "None")


def test_files_may_grow_and_shrink_to_a_noted_size(path: Path, files: OpenFiles) -> None:
    path.write_bytes(b"sixsix")
    beside(path, "-shm").unlink()
    assert files.fault() is None
    os.truncate(path, 2)
    assert files.fault() is not None
    assert files.note_sizes() is None
    assert files.fault() is None


def test_the_first_of_several_replaced_files_is_reported(path: Path, files: OpenFiles) -> None:
    for suffix in ("", "-head"):
        beside(path, suffix).unlink()
    assert str(files.note_sizes()) == f"{path}: journal.db was deleted or replaced while the daemon was using it"


def test_a_file_that_does_not_exist_at_the_start_is_not_watched(path: Path) -> None:
    path.touch()
    files = OpenFiles(path, RealDisk())
    beside(path, "-head").write_bytes(b"x")
    assert (files.fault(), files.note_sizes()) == (None, None)
