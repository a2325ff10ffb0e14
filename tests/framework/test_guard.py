"""Tests of the guard around an out-of-tree plugin: its time limit, its thread, and the blame for an exception."""

import bdb
import gc
import json
import math
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from kschedd.framework.exclusion import SchedulerLock
from kschedd.framework.faults import PluginError, PluginTimeout, plain_text, shown
from kschedd.framework.guard import (
    MOST_HUNG,
    OWNERS_LIMIT_S,
    OWNERS_METHODS,
    PLUGIN_LIMIT_S,
    SLOW_START_S,
    START_LIMIT_S,
    GuardedCall,
    PluginGuard,
    PluginTraceback,
    alone,
    waited_for,
    without_limits,
)
from kschedd.framework.status import fault_text
from tests.framework.pods import make_pod


@pytest.fixture(scope="module", autouse=True)
def _no_thread_stays() -> Any:
    before = set(threading.enumerate())
    yield
    gc.collect()  # a plugin's threads end with its guard
    threads = [one for one in threading.enumerate() if one not in before and one.name.startswith("plugin ")]
    for one in threads:
        one.join(30)
    assert not [one for one in threads if one.is_alive()]


@pytest.fixture
def let_go() -> Any:
    event = threading.Event()
    yield event
    event.set()  # release a blocked thread at the end of the test


def hang(guard: PluginGuard, method: str, let_go: threading.Event, *args: Any) -> PluginTimeout:
    """Begin a call that blocks until it is released, and let it time out."""
    call, begun = GuardedCall(), threading.Event()

    def waits(*args: Any) -> None:
        begun.set()
        let_go.wait()

    threading.Thread(target=call.run, args=(lambda: guard.call(method, waits, *args),), daemon=True).start()
    assert begun.wait(30)
    return call.give_up(0.05)


def test_a_call_that_does_not_return_is_given_up_at_its_limit(let_go: threading.Event) -> None:
    with pytest.raises(PluginTimeout, match=r"plugin Bad: permit did not return within 0\.05s"):
        PluginGuard("Bad", 0.05).call("permit", let_go.wait)


def test_a_hung_plugin_is_not_called_again_before_it_is_back(let_go: threading.Event) -> None:
    guard = PluginGuard("Bad", 60)
    assert str(hang(guard, "permit", let_go)) == "plugin Bad: permit did not return within 0.05s"
    calls: list[int] = []
    with pytest.raises(PluginTimeout):
        guard.call("bind", calls.append, 1)
    assert calls == []
    [hung] = guard.hanging
    let_go.set()
    assert hung.returned.wait(30)
    guard.call("bind", calls.append, 2)
    assert calls == [2]


def test_a_call_that_hangs_over_one_pod_fails_no_other_pod(let_go: threading.Event) -> None:
    guard = PluginGuard("Bad", 60)
    one, other = make_pod("one"), make_pod("other")
    hang(guard, "score", let_go, one)
    with pytest.raises(PluginTimeout, match="score was not called: an earlier call for this pod has not returned yet"):
        guard.call("score", str, one)
    assert guard.call("score", lambda pod: pod.name, other) == "other"
    assert guard.batch("filter", lambda: 7, other) == 7


def test_a_plugin_is_refused_once_too_many_of_its_calls_hang_and_no_longer(let_go: threading.Event) -> None:
    guard = PluginGuard("Bad", 60)
    for number in range(MOST_HUNG):
        hang(guard, "score", let_go, make_pod(f"hangs-{number}"))
    why = f"filter was not called: {MOST_HUNG} earlier calls have not returned, and no more threads are started for it"
    with pytest.raises(PluginTimeout, match=why):
        guard.call("filter", str, make_pod("other"))
    let_go.set()
    for hung in guard.hanging:
        assert hung.returned.wait(30)
    assert guard.call("filter", lambda pod: pod.name, make_pod("other")) == "other"


def test_a_call_whose_thread_comes_too_late_is_not_made_and_hangs_nowhere() -> None:
    guard, calls = PluginGuard("Late"), list[int]()
    call = GuardedCall(calling=guard, method="score", args=(make_pod("web"),))
    assert str(call.give_up(0.2)) == "plugin Late: score did not return within 0.2s"
    with pytest.raises(PluginTimeout):
        call.run(lambda: calls.append(1))
    assert (calls, guard.hanging) == ([], [])
    [cost] = guard.costs.all()
    assert (cost.name, cost.method, cost.timeouts) == ("Late", "score", 1)


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param(lambda: KeyError("x"), "KeyError: 'x'", id="exception"),
        pytest.param(lambda: SystemExit(3), "SystemExit: 3", id="exit"),
        pytest.param(KeyboardInterrupt, "KeyboardInterrupt", id="interrupt"),
        pytest.param(GeneratorExit, "GeneratorExit", id="generator-exit"),
        pytest.param(lambda: StopIteration(1), "StopIteration: 1", id="stop-iteration"),
        pytest.param(Mute, "Mute", id="one-that-cannot-be-shown"),
        pytest.param(lambda: ValueError("\ud800"), "ValueError: \\ud800", id="text-that-cannot-be-encoded"),
    ],
)
@pytest.mark.parametrize("inline", [False, True])
def test_whatever_is_raised_bears_the_plugins_name_and_line(
    fault: Callable[[], BaseException], why: str, inline: bool
) -> None:
    def fails() -> None:
        raise fault()  # created here, since its traceback would keep the guard alive

    guard = PluginGuard("Bad")
    run = GuardedCall().run if inline else (lambda work: work())
    with pytest.raises(PluginError) as raised:
        run(lambda: guard.call("normalize", fails))
    assert (raised.value.plugin, raised.value.method) == ("Bad", "normalize")
    line = fails.__code__.co_firstlineno + 1
    assert raised.value.why == f"{why} (test_guard.py:{line})"


def test_of_nested_calls_the_inner_one_is_to_blame(let_go: threading.Event) -> None:
    outer, inner = PluginGuard("Outer", 60), PluginGuard("Inner", 60)
    call, begun, one = GuardedCall(), threading.Event(), make_pod("one")

    def waits(pod: Any) -> None:
        begun.set()
        let_go.wait()

    def nested() -> None:
        outer.call("post_filter", lambda pod: inner.call("filter", waits, pod), one)

    threading.Thread(target=call.run, args=(nested,), daemon=True).start()
    assert begun.wait(30)
    assert str(call.give_up(0.05)) == "plugin Inner: filter did not return within 0.05s"
    assert (len(outer.hanging), [hung.pod for hung in inner.hanging]) == (0, [one.uid])
    with pytest.raises(PluginTimeout, match="plugin Inner: filter was not called"):
        outer.call("post_filter", lambda: inner.call("filter", str, one))
    assert outer.call("post_filter", int) == 0


def test_a_call_that_was_given_up_calls_no_plugin_and_changes_nothing_any_more(let_go: threading.Event) -> None:
    guard, call, begun, later = PluginGuard("Bad", 60), GuardedCall(), threading.Event(), threading.Event()
    outcomes: list[str] = []

    def slow() -> None:
        begun.set()
        let_go.wait()
        for question in (lambda: guard.call("filter", int), lambda: waited_for().__enter__()):
            try:
                question()
            except Exception as refusal:
                outcomes.append(type(refusal).__name__)
        later.set()

    threading.Thread(target=call.run, args=(lambda: guard.call("pre_filter", slow),), daemon=True).start()
    assert begun.wait(30)
    call.give_up(0.05)
    let_go.set()
    assert later.wait(30)
    assert outcomes == ["PluginTimeout", "RuntimeError"]


def test_the_thread_ends_with_the_guard() -> None:
    guard = PluginGuard("Brief")
    thread = guard.call("filter", threading.current_thread)
    assert thread.is_alive()
    del guard
    gc.collect()
    thread.join(5)
    assert not thread.is_alive()


def test_long_and_odd_values_are_cut_short() -> None:
    assert len(plain_text("x" * 10_000)) == 4003
    assert len(shown(list(range(1000)))) == 203
    assert shown(10**5000) == "a int"
    assert shown(type("Odd", (), {"__repr__": lambda self: 1 / 0})()) == "a Odd"


def test_the_line_is_the_plugins_own_even_if_a_library_raised() -> None:
    def loads() -> None:
        json.loads("{")

    with pytest.raises(ValueError, match="Expecting") as raised:
        loads()
    assert fault_text(raised.value).endswith(f"(test_guard.py:{loads.__code__.co_firstlineno + 1})")


def test_without_limits_a_call_runs_in_the_callers_thread() -> None:
    guard = PluginGuard("Trusted", limit_s=0.0)
    with without_limits():
        assert guard.call("filter", threading.get_ident) == threading.get_ident()
        with pytest.raises(PluginError, match="Trusted"):
            guard.call("filter", {}.__getitem__, "missing")
        with pytest.raises(KeyboardInterrupt):
            guard.call("filter", _interrupted)


def _interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("method", sorted(OWNERS_METHODS))
def test_what_the_queue_or_the_store_calls_is_refused_for_all_while_one_call_hangs(
    method: str, let_go: threading.Event
) -> None:
    guard = PluginGuard("Bad")
    assert (guard.limit_of(method), guard.limit_of("filter")) == (OWNERS_LIMIT_S, PLUGIN_LIMIT_S)
    hang(guard, method, let_go, make_pod("one"))
    other, calls = make_pod("other"), []
    with pytest.raises(PluginTimeout, match=f"{method} was not called: an earlier call has not returned yet"):
        guard.call(method, calls.append, other)
    assert guard.call("filter", lambda pod: pod.name, other) == "other"
    let_go.set()
    for hung in guard.hanging:
        assert hung.returned.wait(30)
    with pytest.raises(PluginTimeout, match=f"{method} was not called: 1 calls took too long, and it is called again"):
        guard.call(method, calls.append, other)
    assert calls == []


def test_the_pause_after_calls_that_took_too_long_doubles_and_ends_with_one_that_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("kschedd.framework.guard.perf_counter", lambda: now)
    guard = PluginGuard("Bad")
    for pause in (2, 4, 8, 16, 32, 64, 64):
        guard.pause("pre_enqueue")
        now += pause - 1
        with pytest.raises(PluginTimeout, match="it is called again in 1s"):
            guard.call("pre_enqueue", str)
        now += 1
    assert guard.call("pre_enqueue", str) == ""
    guard.pause("pre_enqueue")
    now += 2
    assert guard.call("pre_enqueue", str) == ""


def test_a_start_that_takes_long_names_the_plugin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], let_go: threading.Event
) -> None:
    monkeypatch.setattr("kschedd.framework.guard.SLOW_START_S", 0.01)
    with pytest.raises(PluginTimeout):
        PluginGuard("").call("import", let_go.wait, limit_s=0.01, source="brief.py")
    assert capsys.readouterr().err == "", "the limit names the plugin at the same time"
    with pytest.raises(PluginTimeout):
        PluginGuard("").call("import", let_go.wait, limit_s=0.05, source="slow.py")
    why = "import has not returned after 0.01s, and is given up after 0.05s"
    assert capsys.readouterr().err == f"waiting for plugin slow.py: {why}\n"


def test_the_limits_are_the_documented_ones() -> None:
    """The page on plugins (examples/plugins) states these numbers."""
    assert (PLUGIN_LIMIT_S, OWNERS_LIMIT_S, START_LIMIT_S, SLOW_START_S, MOST_HUNG) == (5.0, 1.0, 30.0, 3.0, 32)


def test_with_an_infinite_limit_a_plugin_is_called_in_the_callers_thread_and_its_exceptions_are_stored() -> None:
    raised: deque[PluginTraceback] = deque()
    guard = PluginGuard("Trusted", math.inf, raised=raised)
    assert guard.call("filter", threading.get_ident) == threading.get_ident()
    assert (guard.limit_of("filter"), guard.limit_of("validate")) == (math.inf, math.inf)
    with pytest.raises(PluginError, match="Trusted"):
        guard.call("score", json.loads, "{")
    [stored] = raised
    assert (stored.plugin, stored.method) == ("Trusted", "score")
    assert stored.message.startswith("JSONDecodeError: Expecting property name")
    assert "json/decoder.py" in stored.traceback
    assert "framework/guard.py" not in stored.traceback
    with pytest.raises(RuntimeError, match="allowed only within a call"), waited_for():
        pass


def test_quitting_the_debugger_interrupts_a_call_without_a_limit_and_is_a_fault_in_others() -> None:
    def quits() -> None:
        raise bdb.BdbQuit

    guard = PluginGuard("Debugged")
    with without_limits(), pytest.raises(KeyboardInterrupt, match="the debugger was quit"):
        guard.call("filter", quits)
    with pytest.raises(PluginError, match="plugin Debugged: BdbQuit"):
        guard.call("filter", quits)


def test_each_call_is_counted_with_its_failure() -> None:
    guard = PluginGuard("Mine")
    assert guard.batch("filter", lambda: guard.call("filter", int), make_pod("web")) == 0
    assert guard.call("filter", int, noted=False) == 0
    with pytest.raises(PluginError):
        guard.call("filter", int, "x")
    with pytest.raises(PluginError):
        GuardedCall().run(lambda: guard.call("filter", int, "x"))
    assert [(cost.method, cost.calls, cost.failures) for cost in guard.costs.all()] == [("filter", 3, 2)]


def test_a_thread_may_change_the_schedulers_state_during_a_call_only() -> None:
    call = GuardedCall()

    def change() -> str:
        with waited_for():
            return "changed"

    assert call.run(change) == "changed"
    assert call.done.is_set()
    with pytest.raises(RuntimeError, match="allowed only within a call by the scheduler"):
        change()


class CountingLock(SchedulerLock):
    """A lock that counts how often it was taken for a change."""

    count = 0

    def taken(self) -> AbstractContextManager[None]:
        self.count += 1
        return super().taken()


def test_exclusive_access_takes_the_lock_unless_the_call_has_it() -> None:
    lock = CountingLock()

    def access() -> int:
        with alone(lock):
            return lock.count

    abandoned = GuardedCall()

    def late() -> int:
        abandoned.give_up(0.05)
        return access()

    assert access() == 1, "a thread of the plugin"
    assert GuardedCall().run(access) == 1, "a call that waits for the thread, so that the caller has the lock"
    assert GuardedCall(scheduler=lock).run(access) == 2, "a call beside the scheduler"
    assert abandoned.run(late) == 3, "the caller no longer waits"
    with alone(None):
        assert lock.count == 3, "one thread does all work"
