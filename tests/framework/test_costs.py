"""Tests of the costs and limits of plugin calls that the guard records."""

import threading
from typing import Any

import pytest

from kschedd.framework.costs import CallCost, CallCosts
from kschedd.framework.faults import PluginError
from kschedd.framework.guard import GuardedCall, PluginGuard
from tests.framework.pods import make_pod


def test_quantiles_are_of_the_last_calls_and_counts_of_all() -> None:
    costs = CallCosts()
    for number in range(1, 101):
        costs.returned("P", "filter", number / 1000, failed=number % 10 == 0)
    costs.timed_out("P", "filter")
    costs.timed_out("P", "bind")
    assert costs.all() == [
        CallCost("P", "bind", 1, None, None, None, 1, 0),
        CallCost("P", "filter", 101, 0.051, 0.099, 0.1, 1, 10),
    ]
    for _ in range(1000):
        costs.returned("P", "filter", 1.0, failed=False)
    [_, cost] = costs.all()
    assert (cost.calls, cost.p50_s, cost.longest_s) == (1101, 1.0, 1.0)


def fails() -> None:
    raise ValueError("boom")


@pytest.mark.parametrize("inline", [False, True])
def test_each_call_is_counted_once(inline: bool) -> None:
    guard = PluginGuard("P")
    run: Any = GuardedCall().run if inline else lambda work: work()
    run(lambda: guard.call("filter", int))
    with pytest.raises(PluginError):
        run(lambda: guard.call("filter", fails))
    run(lambda: guard.batch("score", lambda: [guard.call("score", int) for _ in range(3)], make_pod("web")))
    counted = {cost.method: (cost.calls, cost.failures) for cost in guard.costs.all()}
    assert counted == {"filter": (2, 1), "score": (3, 0)}


def test_a_call_that_is_given_up_is_a_time_out_and_nothing_else_when_it_is_back() -> None:
    guard, call, begun, let_go = PluginGuard("P", 20.0), GuardedCall(), threading.Event(), threading.Event()

    def hangs() -> None:
        begun.set()
        let_go.wait(30)

    threading.Thread(target=call.run, args=(lambda: guard.call("bind", hangs),), daemon=True).start()
    assert begun.wait(30)
    assert str(call.give_up(0.05)) == "plugin P: bind did not return within 0.05s"
    let_go.set()
    assert call.done.wait(30)
    [cost] = guard.costs.all()
    assert (cost.method, cost.calls, cost.timeouts, cost.p50_s) == ("bind", 1, 1, None)


def test_limits_are_by_method() -> None:
    guard = PluginGuard("P", 20.0)
    guard.limits = {"bind": 60.0}
    assert (guard.limit_of("bind"), guard.limit_of("filter")) == (60.0, 20.0)
