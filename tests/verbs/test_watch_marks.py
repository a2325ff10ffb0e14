"""Tests of the marks of new rows in `watch`, and of its continuation after the daemon was unavailable."""

from typing import Any

import pytest

from kschedd.printing.terminal.style import TerminalStyle
from kschedd.rpc.errors import ConnectionLostError, NoDaemonError
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.objects.watching import marked
from kschedd.verbs.table import run_words
from tests.verbs.fake_daemon import NOW, FakeDaemon, node

BEFORE = ["NAME    STATUS    AGE", "web-0   Pending   59s", "web-1   Running   2m3s"]
AFTER = "NAME    STATUS    AGE\nweb-0   Running   61s\nweb-1   Running   2m5s\n\nweb-2   Pending   1s\n"


def test_changed_lines_are_marked_whatever_their_age() -> None:
    assert marked(BEFORE, AFTER, TerminalStyle()) == (
        "NAME    STATUS    AGE\nweb-0   Running   61s *\nweb-1   Running   2m5s\n\nweb-2   Pending   1s *\n"
    )


def test_they_are_bold_where_there_are_colors() -> None:
    lines = marked(BEFORE, AFTER, TerminalStyle(color=True)).splitlines()
    assert lines[1] == "\x1b[1mweb-0   Running   61s\x1b[0m"
    assert lines[2] == "web-1   Running   2m5s"


def test_nothing_is_new_at_the_first_look() -> None:
    assert "*" not in marked(None, AFTER, TerminalStyle())


class Connections:
    """A daemon that closes the connection at its second call, refuses some connections, and is then back."""

    def __init__(self, refused: int) -> None:
        self.refused = refused
        self.calls = 0
        self.made = 0
        self.daemon = FakeDaemon(node("n1"))

    def connect(self) -> Any:
        self.made += 1
        if 1 < self.made <= 1 + self.refused:
            raise NoDaemonError("k.sock")
        return self

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        self.calls += 1
        if self.made == 1 and self.calls > 1:
            raise ConnectionLostError("k.sock", "it closed the connection")
        return self.daemon.call(method, *args, **named)


@pytest.mark.parametrize("refused", [0, 2])
def test_a_watch_goes_on_where_the_daemon_was_away(refused: int) -> None:
    connections = Connections(refused)
    shown: list[str] = []
    session = VerbSession(connections.connect, shown.append, shown.append, now=lambda: NOW, sleep=lambda seconds: None)
    assert run_words(session, ["watch", "--times", f"{3 + refused}", "get", "nodes", "-o", "name"]) == 0
    assert shown == [
        "node/n1\n",
        "error: lost the daemon at k.sock: it closed the connection; looking again\n",
        *["error: no daemon at k.sock: start one with `kschedd run --detach`; looking again\n"] * refused,
        "node/n1\n",
    ]
    assert connections.made == 2 + refused


def test_a_watch_without_a_daemon_to_begin_with_is_an_error() -> None:
    connections = Connections(refused=1)
    connections.made = 1
    session = VerbSession(connections.connect, str, str)
    with pytest.raises(NoDaemonError):
        run_words(session, ["watch", "get", "nodes"])
