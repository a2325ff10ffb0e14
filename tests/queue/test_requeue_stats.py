"""Tests of the statistics of useful and useless pod wake-ups."""

import pytest

from kschedd.framework.events import SCHEDULE_ATTEMPT_FAILURE, UNSCHEDULABLE_TIMEOUT
from kschedd.queue.entry import Move, SubQueue
from kschedd.queue.requeue_stats import RequeueOutcome, RequeueStats


def move(
    when: int, source: SubQueue, target: SubQueue, event: str = "", plugin: str = "", seen: str = "", key: str = "n/p"
) -> Move:
    return Move(when, key, f"uid-{key}", source, target, event, plugin, seen)


SLEEPS = move(1, SubQueue.IN_FLIGHT, SubQueue.UNSCHEDULABLE, SCHEDULE_ATTEMPT_FAILURE)


def test_a_wake_up_helped_if_the_next_attempt_found_a_node_and_was_in_vain_if_not() -> None:
    wakeups = RequeueStats()
    for end in (SLEEPS, move(4, SubQueue.IN_FLIGHT, SubQueue.OUTSIDE)):
        wakeups(SLEEPS)
        wakeups(move(2, SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF, "NodeAdd", "Fit"))
        wakeups(move(3, SubQueue.BACKOFF, SubQueue.IN_FLIGHT, "PopFromBackoffQ"))
        wakeups(end)
    assert wakeups.counts == {("Fit", "NodeAdd"): RequeueOutcome(helped=1, in_vain=1)}
    assert wakeups.as_data() == [{"plugin": "Fit", "event": "NodeAdd", "helped": 1, "in_vain": 1}]


def test_an_event_during_the_attempt_that_keeps_the_pod_awake_is_a_wake_up() -> None:
    wakeups = RequeueStats()
    wakeups(move(1, SubQueue.IN_FLIGHT, SubQueue.BACKOFF, SCHEDULE_ATTEMPT_FAILURE, "Fit", "AssignedPodDelete"))
    wakeups(SLEEPS)
    assert wakeups.counts == {("Fit", "AssignedPodDelete"): RequeueOutcome(in_vain=1)}


def test_first_attempts_and_pods_that_are_deleted_count_for_nothing() -> None:
    wakeups = RequeueStats()
    wakeups(move(1, SubQueue.OUTSIDE, SubQueue.ACTIVE, "UnschedulablePodAdd"))
    wakeups(SLEEPS)
    wakeups(move(2, SubQueue.UNSCHEDULABLE, SubQueue.ACTIVE, "NodeAdd", "Fit"))
    wakeups(move(3, SubQueue.ACTIVE, SubQueue.OUTSIDE, "UnschedulablePodDelete"))
    wakeups(SLEEPS)
    assert wakeups.counts == {}


def test_a_pod_that_the_timeout_brought_to_a_node_was_woken_late() -> None:
    wakeups = RequeueStats()
    wakeups(SLEEPS)
    wakeups(move(2, SubQueue.UNSCHEDULABLE, SubQueue.ACTIVE, UNSCHEDULABLE_TIMEOUT.label))
    wakeups(move(3, SubQueue.IN_FLIGHT, SubQueue.OUTSIDE))
    assert wakeups.late == 1


def test_only_pods_that_the_timeout_woke_are_late() -> None:
    wakeups = RequeueStats()
    wakeups(move(2, SubQueue.UNSCHEDULABLE, SubQueue.ACTIVE, "NodeAdd", "Fit"))
    wakeups(move(3, SubQueue.IN_FLIGHT, SubQueue.OUTSIDE))
    assert wakeups.counts == {("Fit", "NodeAdd"): RequeueOutcome(helped=1)}
    assert wakeups.late == 0


@pytest.mark.parametrize("place", [SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF])
def test_a_deleted_pod_is_not_woken(place: SubQueue) -> None:
    wakeups = RequeueStats()
    wakeups(move(2, SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF, "NodeAdd", "Fit"))
    wakeups(move(3, place, SubQueue.OUTSIDE, "UnschedulablePodDelete"))
    wakeups(SLEEPS)
    assert wakeups.counts == {}


def test_an_event_is_no_wake_up_if_the_attempt_did_not_fail() -> None:
    wakeups = RequeueStats()
    wakeups(move(1, SubQueue.IN_FLIGHT, SubQueue.OUTSIDE, "", "Fit", "NodeAdd"))
    wakeups(SLEEPS)
    assert wakeups.counts == {}


def test_a_move_between_gated_and_unschedulable_wakes_nobody() -> None:
    wakeups = RequeueStats()
    wakeups(move(1, SubQueue.GATED, SubQueue.UNSCHEDULABLE, "NodeAdd", "Fit"))
    wakeups(SLEEPS)
    assert wakeups.counts == {}


def test_the_most_useless_wake_ups_are_shown_first() -> None:
    wakeups = RequeueStats()
    for plugin, times in [("A", 1), ("B", 2), ("C", 1)]:
        for _ in range(times):
            wakeups(move(2, SubQueue.UNSCHEDULABLE, SubQueue.ACTIVE, "NodeAdd", plugin))
            wakeups(SLEEPS)
    assert [row["plugin"] for row in wakeups.as_data()] == ["B", "A", "C"]


def test_moves_are_observed_while_a_pod_is_woken() -> None:
    ends = move(3, SubQueue.IN_FLIGHT, SubQueue.OUTSIDE)
    woken = move(2, SubQueue.GATED, SubQueue.ACTIVE, "NodeAdd", "Fit")
    seen = move(1, SubQueue.IN_FLIGHT, SubQueue.BACKOFF, SCHEDULE_ATTEMPT_FAILURE, "Fit", "NodeAdd")
    for wakes in (woken, seen):
        wakeups = RequeueStats()
        for each in (ends, wakes, ends):
            wakeups.observe([each], {(each.source, each.event)})
        assert wakeups.counts == {("Fit", "NodeAdd"): RequeueOutcome(helped=1)}
