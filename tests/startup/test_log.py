"""The daemon's log."""

import logging

from structlog.testing import capture_logs

from kschedd.startup.log import NotAccepting


def test_connections_that_cannot_be_accepted_are_told_of_once_a_minute() -> None:
    times = iter([0.0, 0.1, 59.9, 60.0])
    handler = NotAccepting(lambda: next(times))
    said = ("accept returned %s (%s)", ("EMFILE", "Too many open files"))
    record = logging.LogRecord("trio.serve_listeners", logging.ERROR, __file__, 1, *said, None)
    with capture_logs() as lines:
        for _ in range(4):
            handler.handle(record)
    why = "accept returned EMFILE (Too many open files)"
    assert lines == [{"event": "connections_wait", "log_level": "error", "why": why}] * 2
