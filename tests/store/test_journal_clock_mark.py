"""Tests of the file with the cluster's time beside the journal."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kschedd.api.text.times import FIRST_S, LAST_S
from kschedd.store.journal.clock_mark import ClockMark
from tests.store.descriptors import open_files


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[ClockMark]:
    made = ClockMark(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("now_s", [0.0, 1_735_689_600.123456, FIRST_S, LAST_S, -5.5])
def test_the_time_is_read_as_it_was_written(mark: ClockMark, tmp_path: Path, now_s: float) -> None:
    mark.write(1_735_689_600.123456789)
    mark.write(now_s)
    assert mark.read() == now_s
    assert (tmp_path / "clock").stat().st_size == 32, "each time is written over the one before"
    assert (tmp_path / "clock").stat().st_mode & 0o777 == 0o600


def test_without_a_file_there_is_no_time_and_no_warning(mark: ClockMark) -> None:
    with capture_logs() as lines:
        assert mark.read() is None
    assert lines == []


@pytest.mark.parametrize("text", ["", "now", "nan", f"{LAST_S + 1}", f"{FIRST_S - 1}", "\u00e9"])
def test_a_time_that_cannot_be_used_is_ignored_with_a_warning(mark: ClockMark, tmp_path: Path, text: str) -> None:
    (tmp_path / "clock").write_text(text, encoding="utf-8")
    with capture_logs() as lines:
        assert mark.read() is None
    assert [line["event"] for line in lines] == ["clock_mark_unreadable"]


def test_a_folder_in_its_place_is_ignored_with_a_warning(mark: ClockMark, tmp_path: Path) -> None:
    (tmp_path / "clock").mkdir()
    with capture_logs() as lines:
        mark.write(1.0)
        assert mark.read() is None
    assert [line["event"] for line in lines] == ["clock_mark_unwritable", "clock_mark_unreadable"]


def test_a_named_pipe_is_not_waited_for(mark: ClockMark, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "clock")
    with capture_logs() as lines:
        mark.write(1.0)
        assert mark.read() is None
    assert [line["event"] for line in lines] == ["clock_mark_unwritable", "clock_mark_unreadable"]


def test_a_closed_file_is_opened_again(mark: ClockMark, tmp_path: Path) -> None:
    mark.write(1.0)
    mark.write(2.0)
    assert open_files(tmp_path) == ["clock"]
    mark.close()
    mark.close()
    assert not open_files(tmp_path)
    mark.write(3.0)
    assert mark.read() == 3.0
