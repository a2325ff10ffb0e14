"""Tests of the lock of a state directory, and of directories that cannot be used."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from kschedd.store.journal import state_dir
from kschedd.store.journal.state_dir import StateDirError, StateDirInUse, contains_dump, lock_state_dir, note_dump


def test_a_directory_is_made_with_its_parents_for_its_owner_alone(tmp_path: Path) -> None:
    with lock_state_dir(tmp_path / "a" / "b") as locked:
        assert locked.path == tmp_path / "a" / "b"
        assert stat.S_IMODE(locked.path.stat().st_mode) == 0o700
        assert stat.S_IMODE((locked.path / "lock").stat().st_mode) == 0o600
        os.fstat(locked.lock)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(locked.lock)
    with lock_state_dir(tmp_path / "a" / "b"):
        pass


def test_a_relative_path_is_reported_as_an_absolute_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with lock_state_dir(Path("here")) as locked:
        assert locked.path == tmp_path / "here"


def test_a_link_to_a_directory_is_used_and_a_link_to_nothing_is_not(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with pytest.raises(StateDirError) as error, lock_state_dir(tmp_path / "link"):
        pass
    assert str(error.value) == (f"state directory {tmp_path}/link: is a link to {tmp_path}/there, which does not exist")
    (tmp_path / "there").mkdir()
    with lock_state_dir(tmp_path / "link"):
        assert (tmp_path / "there" / "lock").exists()


def test_a_file_is_not_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateDirError, match="is a file, not a directory"), lock_state_dir(tmp_path / "file"):
        pass
    with pytest.raises(StateDirError, match="Not a directory"), lock_state_dir(tmp_path / "file" / "below"):
        pass


@pytest.mark.parametrize(("number", "opens"), [(errno.EROFS, True), (errno.EACCES, False)])
def test_the_lock_is_opened_for_reading_only_on_a_read_only_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, opens: bool
) -> None:
    (tmp_path / "lock").touch()
    really = os.open

    def refusing(path: Path, flags: int, *mode: int) -> int:
        if flags & os.O_RDWR:
            raise OSError(number, os.strerror(number))
        return really(path, flags, *mode)

    monkeypatch.setattr(state_dir.os, "open", refusing)
    if opens:
        with lock_state_dir(tmp_path):
            pass
        return
    with pytest.raises(StateDirError, match="Permission denied"), lock_state_dir(tmp_path):
        pass


class Passing:
    """A clock that advances only while somebody sleeps; after `until` seconds, `then` is called."""

    def __init__(self, until: float, then: threading.Event) -> None:
        self.now, self.until, self.then = 100.0, 100.0 + until, then

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now > self.until:
            self.then.set()


@pytest.mark.parametrize(("until", "waits"), [(1.0, True), (60.0, False)])
def test_a_lock_of_a_process_that_ends_soon_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: float, waits: bool
) -> None:
    ended = threading.Event()
    clock = Passing(until, ended)
    monkeypatch.setattr(state_dir, "time", clock)
    flock, tries = state_dir.fcntl.flock, 0

    def held(lock: int, how: int) -> None:
        nonlocal tries
        tries += 1
        if not ended.is_set():
            raise BlockingIOError
        flock(lock, how)

    monkeypatch.setattr(state_dir.fcntl, "flock", held)
    if waits:
        with lock_state_dir(tmp_path):
            assert clock.now > 101.0
        return
    with pytest.raises(StateDirInUse, match="in use by another daemon"), lock_state_dir(tmp_path):
        pass
    assert 102.0 < clock.now < 102.1
    assert 100 <= tries <= 103


def test_a_directory_records_that_its_cluster_contains_a_dump(tmp_path: Path) -> None:
    assert not contains_dump(tmp_path)
    note_dump(tmp_path)
    assert contains_dump(tmp_path)
    note_dump(tmp_path)
    assert contains_dump(tmp_path)
