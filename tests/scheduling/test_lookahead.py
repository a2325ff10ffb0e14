"""What is known ahead changes nothing: a stream of pods, with and without a cache, while nodes and pods change.

The cluster has 700 nodes, of which a search needs 105: there is room for five windows ahead.
"""

from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.scheduling import repetition
from kschedd.scheduling.lookahead import Lookahead, PassingWindow, Window
from kschedd.scheduling.outcome import FitError, ScheduleResult
from kschedd.scheduling.scheduler import Scheduler
from kschedd.scheduling.work import drive
from tests.scheduling.test_evaluation_cache import (
    SOFT_TAINT,
    TAINT,
    ZONES,
    node,
    outcome,
    pod,
    scheduler,
    touched,
)

_NODES = 700


def _with_few_wanted(machine: Scheduler) -> Scheduler:
    machine.profile.percentage = 15
    return machine


class _Stream:
    """One cluster, and two schedulers that place the same pods in it."""

    def __init__(self, *, cpu: int = 4, soft: bool = False) -> None:
        self.cluster = SchedulerCache()
        for number in range(_NODES):
            taints = [TAINT] if number % 7 == 0 else [SOFT_TAINT] if soft and number % 3 == 0 else []
            self.cluster.put_node(node(number, cpu, ZONES[number % 2], taints, number % 11 == 0))
        self.plain = _with_few_wanted(scheduler(self.cluster, False))
        self.cached = _with_few_wanted(scheduler(self.cluster, True))
        self.placed: list[Pod] = []

    def place(self, shape: int) -> None:
        incoming = pod(f"p{len(self.placed)}", shape)
        expected: ScheduleResult | FitError = drive(self.plain.attempt(incoming, {}))
        result: ScheduleResult | FitError = drive(self.cached.attempt(incoming, {}))
        assert outcome(result) == outcome(expected)
        assert self.cached.start.index == self.plain.start.index
        if isinstance(result, ScheduleResult):
            self.placed.append(self.cluster.assume(incoming, result.node_name))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Window | PassingWindow]:
    """The windows that are taken from what is known ahead."""
    windows: list[Window | PassingWindow] = []

    def note(method: str) -> None:
        take = getattr(Lookahead, method)

        def noted(self: Lookahead, *args: Any) -> Any:
            window = take(self, *args)
            if window is not None:
                windows.append(window)
            return window

        monkeypatch.setattr(Lookahead, method, noted)

    note("take")
    note("take_passing")
    return windows


@pytest.mark.parametrize(
    ("shapes", "fewest"),
    [
        pytest.param([0], 12, id="one-template"),
        pytest.param([2], 12, id="one-that-tolerates-all"),
        pytest.param([0, 2], 4, id="two-in-turn"),
        pytest.param([0, 0, 1], 2, id="one-more-often-than-the-other"),
        pytest.param([3], 12, id="spread"),
        pytest.param([4], 12, id="softly-spread"),
        pytest.param([5], 8, id="away-from-their-like"),
        pytest.param([6], 12, id="preferring-pods"),
        pytest.param([0, 3], 4, id="spread-and-not"),
        pytest.param([1, 5], 4, id="those-that-others-keep-away-from"),
        pytest.param([3, 5], 4, id="two-that-count-pods-in-turn"),
    ],
)
@pytest.mark.parametrize("soft", [False, True], ids=["plain", "normalized"])
def test_streams_are_placed_as_without(
    taken: list[Window | PassingWindow], shapes: list[int], fewest: int, soft: bool
) -> None:
    stream = _Stream(soft=soft)
    for number in range(40):
        stream.place(shapes[number % len(shapes)])
    assert len(taken) >= fewest


@pytest.mark.parametrize("shape", [0, 3, 4, 5])
@pytest.mark.parametrize("every", [1, 6])
@pytest.mark.parametrize("change", ["pod gone", "pod come", "pod noted", "node tainted", "node gone", "node come"])
def test_what_changes_ahead_is_seen(taken: list[Window | PassingWindow], change: str, every: int, shape: int) -> None:
    stream = _Stream()
    cluster = stream.cluster
    for number in range(36):
        stream.place(shape)
        if number % every:
            continue
        ahead = (stream.plain.start.index + 37) % _NODES  # within the next window
        match change:
            case "pod gone":
                there = cluster.table.pods[ahead]
                cluster.remove_pod(there[0] if there else stream.placed[number // 2])
            case "pod come":
                cluster.put_pod(pod(f"c{number}", shape, on=cluster.table.names[ahead]))
            case "pod noted":
                cluster.put_pod(touched(stream.placed[-1], "deleted" if number % 2 else "noted"))
            case "node tainted":
                cluster.put_node(node(ahead, 4, ZONES[ahead % 2], [TAINT], False))
            case "node gone":
                cluster.remove_node(f"n{ahead}")
            case "node come":
                cluster.put_node(node(_NODES + number, 4, "a", [], False))


@pytest.mark.parametrize("shape", [0, 3, 5])
def test_all_nodes_are_looked_at_once_most_are_judged(monkeypatch: pytest.MonkeyPatch, shape: int) -> None:
    monkeypatch.setattr(repetition, "MOST_UNKNOWN", 250)
    stream = _Stream()
    assert stream.cached.repetition is not None
    paces, alike, known = stream.cached.repetition._paces, pod("like-them", shape), []
    for _ in range(40):
        stream.place(shape)
        if alike.signature.id in paces and (ahead := paces[alike.signature.id].ahead) is not None:
            known.append(len(ahead.rows))
    assert known[0] < 400
    assert known[-1] >= _NODES


def test_nodes_that_are_full_are_passed_over() -> None:
    stream = _Stream(cpu=1)
    for number in range(_NODES):
        if number % 5:
            stream.cluster.put_pod(pod(f"there{number}", 0, on=f"n{number}"))
    for _ in range(_NODES // 5):
        stream.place(0)
    assert isinstance(drive(stream.cached.attempt(pod("late", 0), {})), FitError)
    assert len(stream.placed) > 100


def test_nobody_goes_back_behind_what_was_looked_through() -> None:
    """What has changed on rows that were passed is not known any more: no window that begins before them is taken."""
    stream = _Stream()
    assert stream.cached.repetition is not None
    paces, start, table = stream.cached.repetition._paces, stream.plain.start, stream.cluster.table
    late, ahead = pod("late", 0), None
    while ahead is None or not 500 < len(ahead.rows) < _NODES:
        stream.place(0)
        ahead = paces[late.signature.id].ahead if late.signature.id in paces else None
    here, later = start.index, (start.index + 150) % _NODES
    stream.cluster.put_pod(pod("there", 2, on=table.names[table.order[(here + 40) % _NODES]]))
    assert ahead.reaches(later, table, False), "what changed lies behind"
    assert ahead.window_at(later, 10) is not None
    assert not ahead.reaches(here, table, False)
    assert ahead.reaches(later, table, False)
