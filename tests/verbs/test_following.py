"""Tests of `get -w` and `events -w` across restarts of the daemon, whose connections are scripted."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import pytest

from kschedd.rpc.errors import ConnectionLostError, NoDaemonError
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.table import run_words
from tests.verbs.fake_daemon import NOW, FakeDaemon, Raw, pod

LOST = ConnectionLostError("k.sock", "it closed the connection")
REFUSED = NoDaemonError("k.sock")
GONE = RpcError("gone", "resource version 12 belongs to another history")
OVER = None  # the stream ends as such
WENT = f"Interrupted: {LOST}. Waiting for the daemon; Ctrl-C stops.\n"


def change(name: str, version: int, type_: str = "ADDED") -> Raw:
    return {"type": type_, "object": pod(name), "resource_version": version}


@attrs.define(eq=False)
class Restarted:
    """A daemon with scripted connections.

    Each connection is refused, is lost when the stream is opened, or yields a stream. A stream is rejected, or yields
    the given items and then fails or ends.
    """

    connections: list[tuple[list[Any], Exception | None] | Exception]
    daemon: FakeDaemon
    opened: list[Raw] = attrs.field(factory=list)  # the parameters of each stream
    slept: int = 0
    out: str = ""
    err: str = ""
    on_time: Callable[[], None] = lambda: None
    _current: Any = None

    def connect(self) -> Any:
        self._current = self.connections.pop(0)
        if isinstance(self._current, NoDaemonError):
            raise self._current
        return self

    def call(self, method: str, /, **named: Any) -> Any:
        return self.daemon.call(method, **named)

    @contextmanager
    def subscribe(self, method: str, /, **named: Any) -> Iterator[Any]:
        self.opened.append(named)
        if isinstance(self._current, Exception):
            raise self._current
        items, end = self._current
        if isinstance(end, RpcError) and end.code == "gone":
            raise end
        with self.daemon.subscribe(method, **named) as stream:
            yield Stream(stream.result, items, end)

    def time(self) -> float:
        self.on_time()
        return NOW

    def run(self, line: str) -> int:
        session = VerbSession(
            self.connect,
            self._write,
            self._complain,
            now=lambda: NOW,
            sleep=self._sleep,
            cluster_time=self.time,
        )
        return run_words(session, shlex.split(line))

    def _sleep(self, seconds: float) -> None:
        self.slept += 1

    def _write(self, text: str) -> None:
        self.out += text

    def _complain(self, text: str) -> None:
        self.err += text


@attrs.frozen(eq=False)
class Stream:
    result: Raw
    _items: list[Any]
    _end: Exception | None

    def __iter__(self) -> Iterator[Any]:
        yield from self._items
        if self._end is not None:
            raise self._end


@pytest.mark.parametrize("refused", [0, 3])
def test_a_watch_goes_on_after_the_last_change_shown(refused: int) -> None:
    daemon = Restarted(
        [([change("a", 10), change("b", 12)], LOST), *[REFUSED] * refused, ([change("c", 13)], OVER)], FakeDaemon()
    )
    assert daemon.run("get pods -w -o name") == 0
    assert daemon.out == "pod/a\npod/b\npod/c\n"
    assert daemon.err == WENT + "The daemon is back; continuing after resource version 12.\n"
    place = {"kind": "Pod", "namespace": "default", "epoch": "e1"}
    assert daemon.opened == [{**place, "since": 9}, {**place, "since": 12}]
    assert daemon.slept == 1 + refused


def test_a_watch_of_changes_only_goes_on_where_it_began_if_there_was_none() -> None:
    daemon = Restarted(
        [([], LOST), ([], RpcError("shutting_down", "the daemon is shutting down")), ([], OVER)], FakeDaemon()
    )
    assert daemon.run("get pods --watch-only") == 0
    assert [params.get("since") for params in daemon.opened] == [None, 9, 9]
    assert daemon.err.count("Interrupted: ") == daemon.err.count("The daemon is back") == 2


def test_a_change_that_could_not_be_shown_comes_once() -> None:
    """Request its age from the daemon, which has ended by then."""
    daemon = Restarted([([change("a", 10), change("b", 12)], OVER), ([change("b", 12)], OVER)], FakeDaemon())
    requests = 0

    def fail_the_third_time() -> None:
        nonlocal requests
        requests += 1
        if requests == 3:  # the table, a, b
            raise LOST

    daemon.on_time = fail_the_third_time
    daemon.daemon.objects.append(pod("z"))
    assert daemon.run("get pods -w --no-headers") == 0
    assert [line.split()[0] for line in daemon.out.splitlines()] == ["z", "a", "b"]
    assert [params["since"] for params in daemon.opened] == [9, 10]


def test_what_is_there_comes_again_where_the_daemon_has_another_history() -> None:
    daemon = Restarted([([change("a", 12)], LOST), ([], GONE), ([change("c", 10)], OVER)], FakeDaemon())
    daemon.daemon.objects.append(pod("z"))
    assert daemon.run("get pods -w -o name") == 0
    assert daemon.out == "pod/z\npod/a\npod/z\npod/c\n"
    assert daemon.err == WENT + (
        "The daemon is back: what changed in between is not known; existing objects are listed again, and deletions "
        "since then are not shown.\n"
    )
    assert [params["since"] for params in daemon.opened] == [9, 12, 9]


def test_what_is_there_comes_again_where_another_daemon_came_between_the_list_and_the_watch() -> None:
    daemon = Restarted([([], GONE), ([change("c", 10)], OVER)], FakeDaemon())
    daemon.daemon.objects.append(pod("z"))
    assert daemon.run("get pods -w -o name") == 0
    assert daemon.out == "pod/z\npod/z\npod/c\n"
    assert daemon.err == (
        "The daemon has nothing from resource version 9 on: what changed in between is not known; existing objects "
        "are listed again, and deletions since then are not shown.\n"
    )


def test_a_watch_that_was_too_slow_is_resumed_without_a_word() -> None:
    slow = RpcError("too_slow", "items came faster than they were read")
    daemon = Restarted([([change("a", 12)], slow), ([change("b", 13)], OVER)], FakeDaemon())
    assert daemon.run("get pods -w -o name") == 0
    assert daemon.out == "pod/a\npod/b\n"
    assert daemon.err == ""
    assert [params["since"] for params in daemon.opened] == [9, 12]


def test_a_stream_that_is_refused_for_another_reason_ends_it() -> None:
    daemon = Restarted([([], LOST), ([], RpcError("forbidden", "not you"))], FakeDaemon())
    assert daemon.run("get pods -w") == 1
    assert daemon.err.startswith(WENT)
    assert daemon.err.endswith("error: not you\n")


def test_a_daemon_that_goes_between_the_list_and_the_watch_is_waited_for() -> None:
    daemon = Restarted([LOST, ([change("c", 10)], OVER)], FakeDaemon())
    daemon.daemon.objects.append(pod("z"))
    assert daemon.run("get pods -w -o name") == 0
    assert daemon.out == "pod/z\npod/c\n"
    assert daemon.err == WENT + "The daemon is back; continuing after resource version 9.\n"
    assert [params["since"] for params in daemon.opened] == [9, 9]


def test_a_watch_without_a_daemon_to_begin_with_is_an_error() -> None:
    with pytest.raises(NoDaemonError):
        Restarted([REFUSED], FakeDaemon()).run("get pods -w")


def event(number: int) -> Raw:
    about = {"type": "Normal", "reason": "Scheduled", "object": f"Pod/p{number}", "namespace": "default"}
    times = {"time": "2025-01-01T00:00:00Z", "last_seen": "2025-01-01T00:00:00Z"}
    return {"number": number, **about, **times, "message": "bound", "count": 1, "from": "default-scheduler"}


def test_events_follow_their_list_and_are_told_from_the_start_of_the_next_daemon() -> None:
    gone = RpcError("gone", "not kept")
    daemon = Restarted([([event(4), event(6)], LOST), ([], gone), ([event(1)], LOST), ([event(2)], OVER)], FakeDaemon())
    assert daemon.run("events --for pod/web-1 -w") == 0
    after = [(params["since"], params.get("instance")) for params in daemon.opened]
    assert after == [(3, "i"), (6, "i"), (0, None), (3, "i")]
    assert "it has its events in memory only, so what happened before its start is not known" in daemon.err
