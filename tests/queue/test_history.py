"""The way of a pod through the queue, and what its wake-ups were worth."""

from kschedd.framework.events import SCHEDULE_ATTEMPT_FAILURE, UNSCHEDULABLE_TIMEOUT
from kschedd.queue.entry import SECOND, Move, SubQueue
from kschedd.queue.history import History, as_data, both
from kschedd.queue.requeue_stats import RequeueOutcome, RequeueStats
from kschedd.queue.scheduling_queue import SchedulingQueue
from tests.queue.conftest import Make


def move(
    when: int, source: SubQueue, target: SubQueue, event: str = "", plugin: str = "", seen: str = "", key: str = "n/p"
) -> Move:
    return Move(when, key, f"uid-{key}", source, target, event, plugin, seen)


def test_a_pods_way_is_told_from_its_first_to_its_latest_move(make: Make) -> None:
    history = History()
    queue = SchedulingQueue(recorder=history)
    pod = make.pod("p")
    queue.add(pod, 1 * SECOND)
    entry = queue.pop(2 * SECOND)
    assert entry is not None
    entry.unschedulable_plugins = frozenset({"Fit"})
    queue.add_unschedulable_if_not_present(entry, 3 * SECOND)
    queue.activate([pod], 4 * SECOND)
    assert [(step["time_s"], step["from"], step["to"], step["event"]) for step in as_data(history.of(pod.key))] == [
        (1.0, "outside", "active", "UnschedulablePodAdd"),
        (2.0, "active", "in_flight", ""),
        (3.0, "in_flight", "unschedulable", "ScheduleAttemptFailure"),
        (4.0, "unschedulable", "active", "ForceActivate"),
    ]


def test_nothing_is_known_of_a_pod_nobody_saw() -> None:
    assert History().of("n/away") == ()
    assert History().dropped("n/away") == 0


def test_a_long_way_keeps_its_beginning_and_its_end() -> None:
    history = History(most_of_a_pod=8)
    for when in range(20):
        history(move(when, SubQueue.ACTIVE, SubQueue.BACKOFF))
    assert [step.when for step in history.of("n/p")] == [0, 1, 14, 15, 16, 17, 18, 19]
    assert history.dropped("n/p") == 12


def test_many_pods_share_the_room_but_each_keeps_some() -> None:
    history = History(most_moves=100, most_of_a_pod=50)
    for when in range(10):
        for number in range(50):
            history(move(when, SubQueue.ACTIVE, SubQueue.BACKOFF, key=f"n/{number}"))
    kept = [len(history.of(f"n/{number}")) for number in range(50)]
    assert min(kept) >= 6
    assert sum(kept) <= 50 * 8


def test_only_the_latest_of_those_that_left_are_remembered() -> None:
    history = History(most_gone=2)
    for number in range(4):
        history(move(number, SubQueue.IN_FLIGHT, SubQueue.OUTSIDE, key=f"n/{number}"))
    assert [bool(history.of(f"n/{number}")) for number in range(4)] == [False, False, True, True]
    assert len(history) == 2


def test_a_pod_that_comes_back_is_no_longer_one_that_left() -> None:
    history = History(most_gone=1)
    history(move(1, SubQueue.IN_FLIGHT, SubQueue.OUTSIDE))
    history(move(2, SubQueue.OUTSIDE, SubQueue.BACKOFF, SCHEDULE_ATTEMPT_FAILURE))
    for number in range(3):
        history(move(3, SubQueue.IN_FLIGHT, SubQueue.OUTSIDE, key=f"n/{number}"))
    assert [step.when for step in history.of("n/p")] == [1, 2]


def test_two_recorders_can_listen() -> None:
    first: list[Move] = []
    second: list[Move] = []
    assert both(None, second.append) == second.append
    both(first.append, second.append)(move(1, SubQueue.OUTSIDE, SubQueue.ACTIVE))
    assert first == second
    assert len(first) == 1


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
