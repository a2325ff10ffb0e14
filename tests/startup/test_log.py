"""The daemon's log."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from kschedd.startup.log import LogOutput, NotAccepting


def test_connections_that_cannot_be_accepted_are_told_of_once_a_minute() -> None:
    times = iter([0.0, 0.1, 59.9, 60.0])
    handler = NotAccepting(lambda: next(times))
    answer = ("accept returned %s (%s)", ("EMFILE", "Too many open files"))
    record = logging.LogRecord("trio.serve_listeners", logging.ERROR, __file__, 1, *answer, None)
    with capture_logs() as lines:
        for _ in range(4):
            handler.handle(record)
    why = "accept returned EMFILE (Too many open files)"
    assert lines == [{"event": "connections_wait", "log_level": "error", "why": why}] * 2


@contextmanager
def piped(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Yield the reading end of a pipe that replaces standard error.

    This is not a fixture, because pytest replaces the stream that a fixture sets.
    """
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stderr, os.fdopen(reading, "rb"), monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", stderr)
        yield reading


def test_a_pipe_that_is_not_read_drops_lines_and_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    log, line = LogOutput(), "x" * 1023 + "\n"
    with piped(monkeypatch) as pipe:
        for _ in range(1_000):  # a pipe holds 64 of them
            log.write(line)
            log.flush()
        kept = os.read(pipe, 1 << 20)
        log.write("after\n")
        rest = os.read(pipe, 1 << 20).decode()
    assert set(kept.splitlines()) == {line.strip().encode()}
    dropped = 1_000 - len(kept) // len(line)
    assert rest == f"{dropped} log writes were dropped: standard error was not read\nafter\n"


def test_a_long_text_is_written_whole_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "é" * 10_000 + "\n"
    with piped(monkeypatch) as pipe:
        LogOutput().write(text)
        written = os.read(pipe, 1 << 20).decode()
    assert written == text
