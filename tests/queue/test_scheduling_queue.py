"""Tests of the queue; each test's name is a rule of upstream's."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from kschedd.api.pods import Pod
from kschedd.framework.events import (
    ASSIGNED_POD_ADD,
    NODE_ADD,
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    hints_of,
    on,
)
from kschedd.framework.status import Status, unschedulable
from kschedd.metrics.instruments import Distribution
from kschedd.queue.entry import SECOND, Move, QueuedPod, SubQueue
from kschedd.queue.scheduling_queue import QueueSettings, SchedulingQueue
from kschedd.queue.snapshot import EntryCopies
from kschedd.queue.times import QueueTimes

A, R = ActionType, EventResource
MS = SECOND // 1000
LABELLED = ClusterEvent(R.NODE, A.UPDATE_NODE_LABEL)


def queue(
    *events: ClusterEventWithHint,
    pop_from_backoff: bool = False,
    pre_enqueue: dict[str, Callable[[Pod], Status | None]] | None = None,
    plugin: str = "Fit",
    more: dict[str, tuple[ClusterEventWithHint, ...]] | None = None,
    **options: Any,
) -> SchedulingQueue:
    """Return a queue whose plugin `Fit` (or `plugin`) registers `events`, by default every new node."""
    registered = {plugin: events or hints_of([on(R.NODE, A.ADD)]), **(more or {})}
    return SchedulingQueue(
        QueueSettings(pop_from_backoff_q=pop_from_backoff),
        hints={"default-scheduler": registered},
        pre_enqueue={"default-scheduler": pre_enqueue or {}},
        **options,
    )


def popped(q: SchedulingQueue, pod: Pod, now: int) -> QueuedPod:
    q.add(pod, now)
    entry = q.pop(now)
    assert entry is not None
    assert entry.pod is pod
    return entry


def reject(
    q: SchedulingQueue, entry: QueuedPod, now: int, *plugins: str, pending: tuple[str, ...] = (), seen: int = 0
) -> SubQueue | None:
    entry.unschedulable_plugins = frozenset(plugins)
    entry.pending_plugins = frozenset(pending)
    return q.add_unschedulable_if_not_present(entry, now, seen)


def one_pod_in_each(make: Any, *, empty: bool = False, pop_from_backoff: bool = False) -> SchedulingQueue:
    """Return a queue with one pod in each sub-queue and one in flight, named after it."""
    gate = {"shut": True}
    q = queue(
        more={"Labels": (on(R.NODE, A.UPDATE_NODE_LABEL),), "Gates": (on(R.NODE, A.ADD),)},
        pre_enqueue={"Gates": lambda pod: unschedulable("no") if pod.name == "gated" and gate["shut"] else None},
        pop_from_backoff=pop_from_backoff,
    )
    names = () if empty else ("in_flight", "backoff", "error_backoff", "unschedulable")
    _, *waiting = (popped(q, make.pod(name), 0) for name in ("none", *names))
    for entry in waiting[1:]:
        reject(q, entry, 0, *{"backoff": ["Labels"], "unschedulable": ["Fit"]}.get(entry.pod.name, []))
    if not empty:
        q.move_all_to_active_or_backoff(LABELLED, None, make.node(), 0)
        q.add(make.pod("gated"), 0)
        q.add(make.pod("active"), 0)
    q.done("uid-none", 0)
    gate["shut"] = False
    return q


# The order of pods.


def test_higher_priority_leaves_first_then_the_longer_waiting(make: Any) -> None:
    q = queue()
    for at, (name, priority) in enumerate([("a", 0), ("b", 5), ("c", 5), ("d", 9)]):
        q.add(make.pod(name, priority=priority), at)
    assert [e.pod.name for e in q.entries(SubQueue.ACTIVE)] == ["d", "b", "c", "a"]
    assert [e.pod.name for e in q.entries()] == ["a", "b", "c", "d"]
    assert [e.pod.name for e in iter(lambda: q.pop(9), None)] == ["d", "b", "c", "a"]


def test_the_queue_sort_plugin_decides_the_order(make: Any) -> None:
    q = queue(sort_key=lambda entry: entry.pod.name)
    for name in "cab":
        q.add(make.pod(name), 1)
    assert [e.pod.name for e in iter(lambda: q.pop(9), None)] == ["a", "b", "c"]


def test_an_update_of_an_active_pod_keeps_its_turn(make: Any) -> None:
    q = queue()
    old = make.pod("a")
    q.add(old, 1)
    q.add(make.pod("b"), 2)
    assert q.update(old, make.pod("a", metadata={"labels": {"x": "y"}}), 3) is SubQueue.ACTIVE
    entry = q.pop(4)
    assert entry is not None
    assert entry.pod.labels == {"x": "y"}


def test_an_update_of_an_unknown_pod_adds_it(make: Any) -> None:
    q = queue()
    assert q.update(make.pod("a"), make.pod("a"), 1) is SubQueue.ACTIVE


def test_a_deleted_pod_is_not_popped(make: Any) -> None:
    q = queue()
    q.add(make.pod("a"), 1)
    q.delete(make.pod("a"), 2)
    assert q.pop(3) is None
    assert not q.ready


@pytest.mark.parametrize(
    "place", [SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF, SubQueue.UNSCHEDULABLE, SubQueue.GATED]
)
def test_a_deleted_pod_is_in_no_sub_queue(make: Any, place: SubQueue) -> None:
    q = one_pod_in_each(make)
    (entry,) = q.entries(place)
    q.delete(entry.pod, 9 * SECOND)
    assert q.entries(place) == []
    assert sorted(q.counts().values()) == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("pop_from_backoff", [False, True])
def test_a_restored_queue_continues_as_the_original(make: Any, pop_from_backoff: bool) -> None:
    q = one_pod_in_each(make, pop_from_backoff=pop_from_backoff)
    q.move_all_to_active_or_backoff(LABELLED, None, make.node(), 1)  # an event for the pod in flight
    snapshot, restored = q.snapshot(), one_pod_in_each(make, empty=True, pop_from_backoff=pop_from_backoff)
    restored.restore(snapshot, EntryCopies(snapshot.states))
    found = []
    for queue in (q, restored):
        [flying] = queue.in_flight_pods()
        places = {entry.pod.name: entry.place.value for entry in queue.entries()}
        counts = queue.counts()
        leftover = queue.next_leftover()
        [waiting] = [entry for kind in queue.unschedulable_kinds() for entry in kind]
        queue.delete(waiting.pod, 9)
        returned = reject(queue, flying, 9, "Labels")
        queue.add(make.pod("new"), 9)
        moved = queue.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 9)
        queue.flush_backoff(300 * SECOND)
        pops = [queue.pop(300 * SECOND) for _ in range(9)]
        order = [entry.pod.name for entry in pops if entry is not None]
        found.append(
            (places, counts, leftover, returned, [entry.key for entry in moved], order, queue.scheduling_cycle)
        )
    assert found[0] == found[1]
    places, _, leftover, returned, moved, order, cycle = found[0]
    assert places == {
        place.value: place.value for place in SubQueue if place in q.counts() and place is not SubQueue.IN_FLIGHT
    }
    assert (leftover, returned, moved) == (300 * SECOND, SubQueue.BACKOFF, ["d/gated"])
    assert sorted(order) == ["active", "backoff", "error_backoff", "gated", "in_flight", "new"]
    assert cycle == 11


def test_the_next_pod_is_compared_with_a_popped_one(make: Any) -> None:
    q = queue(pop_from_backoff=True)
    entries = [popped(q, make.pod(name, priority=priority), 0) for name, priority in [("a", 5), ("b", 3)]]
    assert q.order_of(entries[0]) == (0, (-5, 0))
    assert not q.next_comes_before(q.order_of(entries[0]), 0), "no pod is next"
    q.add(make.pod("c", priority=4), 0)
    assert [q.next_comes_before(q.order_of(entry), 0) for entry in entries] == [False, True]
    assert q.pop(0) is not None
    for entry in entries:
        reject(q, entry, 500 * MS, "Fit")
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 500 * MS)
    early = q.pop(600 * MS)
    assert early is entries[0]
    order = q.order_of(early)
    assert order == (1 * SECOND, (-5, 500 * MS))
    assert not q.next_comes_before(order, 600 * MS), "b backs off as long, and has a lower priority"
    q.add(make.pod("low", priority=1), 600 * MS)
    assert q.next_comes_before(order, 600 * MS), "an active pod is before each pod that backs off"
    assert not q.next_comes_before(order, 2 * SECOND), "after the backoff, the priority decides"


def test_of_pods_that_back_off_as_long_the_one_of_higher_priority_is_next(make: Any) -> None:
    q = queue(pop_from_backoff=True)
    low, high = (popped(q, make.pod(name, priority=priority), 0) for name, priority in [("low", 3), ("high", 5)])
    reject(q, low, 500 * MS, "Fit")
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 500 * MS)
    assert q.pop(600 * MS) is low
    assert reject(q, high, 700 * MS, "Fit") is SubQueue.BACKOFF
    assert q.next_comes_before(q.order_of(low), 700 * MS)


def test_a_closed_queue_pops_nothing(make: Any) -> None:
    q = queue()
    q.add(make.pod("a"), 1)
    q.close()
    assert not q.ready
    assert q.pop(2) is None


def test_the_summary_counts_gated_pods_as_unschedulable(make: Any) -> None:
    q = queue(pre_enqueue={"Gates": lambda pod: unschedulable("no") if pod.name == "gated" else None})
    for name in ("a", "b", "c", "gated"):
        q.add(make.pod(name), 1)
    reject(q, q.pop(2), 2, "Fit")
    reject(q, q.pop(3), 3)
    pods, summary = q.pending_pods()
    assert summary == "activeQ:1; backoffQ:1; unschedulablePods:2"
    assert sorted(pod.name for pod in pods) == ["a", "b", "c", "gated"]
    assert q.counts()[SubQueue.GATED] == 1
    assert q.counts()[SubQueue.UNSCHEDULABLE] == 1


# Backoff.


@pytest.mark.parametrize(
    ("rejections", "errors", "seconds"),
    [
        pytest.param(1, 0, 1, id="first-failure-waits-the-initial-second"),
        pytest.param(3, 0, 4, id="each-failure-doubles-it"),
        pytest.param(5, 0, 10, id="never-above-the-limit"),
        pytest.param(200, 0, 10, id="however-often"),
        pytest.param(4, 1, 1, id="errors-count-for-themselves"),
        pytest.param(4, 3, 4, id="errors-in-a-row-double-it-too"),
    ],
)
def test_backoff(make: Any, rejections: int, errors: int, seconds: int) -> None:
    q = queue()
    q.add(make.pod(), 0)
    now = 0
    for attempt in range(rejections + errors):
        now += 100 * SECOND
        entry = q.pop(now) or popped(q, make.pod(), now)
        reject(q, entry, now, *(["Fit"] if attempt < rejections else []))
        last = entry
        if attempt < rejections + errors - 1:
            q.activate([entry.pod], now)
    assert q.backoff_until(last) == now + seconds * SECOND


def test_after_errors_the_count_of_rejections_stays(make: Any) -> None:
    q = queue()
    entry = popped(q, make.pod(), 0)
    for plugins in (["Fit"], [], ["Fit"]):
        reject(q, entry, 1, *plugins)
        q.activate([entry.pod], 1)
        assert q.pop(1) is entry
    assert (entry.unschedulable_count, entry.consecutive_errors, entry.attempts) == (2, 0, 4)


@pytest.mark.parametrize(
    ("aligned", "failed_at", "still", "over"),
    [
        pytest.param(False, 300 * MS, 1300 * MS, 1301 * MS, id="unaligned-the-end-itself-still-waits"),
        pytest.param(True, 300 * MS, 1999 * MS, 2000 * MS, id="aligned-a-wait-is-over-with-its-second"),
        pytest.param(True, 1000 * MS, 2999 * MS, 3000 * MS, id="aligned-an-end-on-a-second-takes-one-more"),
    ],
)
def test_backoff_ends(make: Any, aligned: bool, failed_at: int, still: int, over: int) -> None:
    q = queue(pop_from_backoff=aligned)
    assert reject(q, popped(q, make.pod(), 0), failed_at) is SubQueue.ERROR_BACKOFF
    assert q.flush_backoff(still) == []
    assert [entry.pod.name for entry in q.flush_backoff(over)] == ["p"]


@pytest.mark.parametrize("aligned", [True, False])
def test_next_flush_is_the_first_second_that_moves_something(make: Any, aligned: bool) -> None:
    q = queue(pop_from_backoff=aligned)
    assert q.next_flush() is None
    reject(q, popped(q, make.pod("a"), 0), 300 * MS)
    reject(q, popped(q, make.pod("b"), 0), 2000 * MS, "Fit")
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 2000 * MS)
    assert q.next_flush() == 2 * SECOND
    assert len(q.flush_backoff(2 * SECOND)) == 1
    assert q.next_flush() == 4 * SECOND
    assert q.flush_backoff(3 * SECOND) == []
    assert len(q.flush_backoff(4 * SECOND)) == 1


def test_an_empty_active_queue_pops_from_backoff_the_soonest_second_by_priority(make: Any) -> None:
    q = queue(pop_from_backoff=True)
    entries = [popped(q, make.pod(n, priority=p), 0) for n, p in [("a", 0), ("b", 9), ("c", 5), ("late", 100)]]
    for at, entry in zip([100, 200, 300, 1000], entries, strict=True):
        reject(q, entry, at * MS, "Fit")
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 1000 * MS)
    assert q.ready
    assert [e.pod.name for e in iter(lambda: q.pop(1001 * MS), None)] == ["b", "c", "a", "late"]


def test_with_the_feature_off_backoff_is_waited_out(make: Any) -> None:
    q = queue()
    reject(q, popped(q, make.pod(), 0), 0, "Fit")
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 1)
    assert not q.ready
    assert q.pop(2) is None


def test_backoff_after_an_error_is_never_popped_early(make: Any) -> None:
    q = queue(pop_from_backoff=True)
    reject(q, popped(q, make.pod(), 0), 0)
    assert not q.ready
    assert q.pop(1) is None


def test_a_pod_past_its_backoff_goes_straight_to_active(make: Any) -> None:
    q = queue()
    reject(q, popped(q, make.pod(), 0), 0, "Fit")
    (entry,) = q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 5 * SECOND)
    assert entry.place is SubQueue.ACTIVE


# Events.


@pytest.mark.parametrize(
    ("event", "place"),
    [
        pytest.param(NODE_ADD, SubQueue.BACKOFF, id="registered"),
        pytest.param(LABELLED, SubQueue.UNSCHEDULABLE, id="not-registered"),
        pytest.param(ASSIGNED_POD_ADD, SubQueue.UNSCHEDULABLE, id="another-kind"),
        pytest.param(ClusterEvent(R.WILDCARD, A.ALL), SubQueue.BACKOFF, id="a-wildcard-moves-every-pod"),
    ],
)
def test_an_event_moves_pods_rejected_by_a_plugin_that_registered_it(
    make: Any, event: ClusterEvent, place: SubQueue
) -> None:
    q = queue()
    entry = popped(q, make.pod(), 0)
    assert reject(q, entry, 0, "Fit") is SubQueue.UNSCHEDULABLE
    q.move_all_to_active_or_backoff(event, None, None, 1)
    assert entry.place is place


def test_other_plugins_registrations_do_not_count(make: Any) -> None:
    q = queue(more={"Other": (on(R.NODE, A.UPDATE_NODE_LABEL),)})
    entry = popped(q, make.pod(), 0)
    reject(q, entry, 0, "Fit")
    assert q.move_all_to_active_or_backoff(LABELLED, None, make.node(), 1) == []


def test_each_pod_is_moved_by_the_events_of_its_own_plugins(make: Any) -> None:
    q = queue(more={"Other": (on(R.NODE, A.UPDATE_NODE_LABEL),)})
    for name, plugin in [("a", "Other"), ("b", "Fit")]:
        reject(q, popped(q, make.pod(name), 0), 0, plugin)
    for name, event in [("b", NODE_ADD), ("a", LABELLED)]:
        moved = q.move_all_to_active_or_backoff(event, None, make.node(), 1)
        assert [entry.pod.name for entry in moved] == [name]


def test_the_answers_of_the_plugins_that_rejected_a_pod_are_shown(make: Any) -> None:
    skips = on(R.NODE, A.ADD, lambda pod, old, new: QUEUE_SKIP)
    queues = on(R.NODE, A.ADD, lambda pod, old, new: QUEUE)
    registered = {
        "Skips": (skips,),
        "Queues": (queues, skips),
        "Never": (on(R.NODE, A.DELETE),),
        "Plain": (on(R.NODE, A.ADD),),
    }
    q = queue(more=registered)
    entry = popped(q, make.pod(), 0)
    reject(q, entry, 0, "Skips", "Queues", "Never", pending=("Plain",))
    assert q.hints.answers(entry, NODE_ADD, None, make.node()) == [
        ("Never", "not registered"),
        ("Plain", "Queue"),
        ("Queues", "Queue"),
        ("Skips", "QueueSkip"),
    ]


@pytest.mark.parametrize(("hint", "label"), [(lambda pod, old, new: QUEUE_SKIP, "QueueSkip"), (None, ""), (1, "Error")])
def test_calls_of_hints_are_timed(make: Any, hint: Any, label: str) -> None:
    q = queue(on(R.NODE, A.ADD, hint))
    clock = iter([1.0, 3.5])
    times = QueueTimes(lambda: next(clock))
    q.time(times)
    reject(q, popped(q, make.pod(), 0), 0, "Fit")
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 1)
    _, hints = times.families()
    found = {labels: (each.count, each.sum) for labels, each in hints.samples.items() if isinstance(each, Distribution)}
    assert found == ({("Fit", "NodeAdd", label): (1, 2.5)} if label else {})


def test_a_wildcard_event_with_a_pod_is_for_that_pod_only(make: Any) -> None:
    q = queue()
    for name in "ab":
        reject(q, popped(q, make.pod(name), 0), 0, "Fit")
    moved = q.move_all_to_active_or_backoff(ClusterEvent(R.WILDCARD, A.ALL), None, make.pod("b"), 1)
    assert [entry.pod.name for entry in moved] == ["b"]


def test_the_pre_check_keeps_pods_out(make: Any) -> None:
    q = queue()
    for name, priority in [("low", 1), ("high", 5)]:
        reject(q, popped(q, make.pod(name, priority=priority), 0), 0, "Fit")
    moved = q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 1, lambda pod: pod.priority < 5)
    assert [entry.pod.name for entry in moved] == ["low"]


def test_a_hint_that_says_skip_keeps_the_pod(make: Any) -> None:
    q = queue(on(R.NODE, A.ADD, lambda pod, old, new: QUEUE if new.name == "good" else QUEUE_SKIP))
    entry = popped(q, make.pod(), 0)
    reject(q, entry, 0, "Fit")
    assert q.move_all_to_active_or_backoff(NODE_ADD, None, make.node("bad"), 1) == []
    assert q.move_all_to_active_or_backoff(NODE_ADD, None, make.node("good"), 1) == [entry]


def test_a_hint_that_raises_counts_as_queue_and_is_reported(make: Any) -> None:
    def broken(pod: Pod, old: Any, new: Any) -> Any:
        raise RuntimeError("boom")

    faults: list[tuple[str, str, str]] = []
    q = queue(on(R.NODE, A.ADD, broken), on_fault=lambda plugin, key, fault: faults.append((plugin, key, str(fault))))
    entry = popped(q, make.pod(), 0)
    reject(q, entry, 0, "Fit")
    assert q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 1) == [entry]
    assert faults == [("Fit", "d/p", "boom")]


@pytest.mark.parametrize(
    ("hints", "place"),
    [
        pytest.param({"Wait": QUEUE, "Fit": QUEUE_SKIP}, SubQueue.ACTIVE, id="queue-of-a-pending-plugin-skips-backoff"),
        pytest.param({"Wait": QUEUE, "Fit": QUEUE}, SubQueue.ACTIVE, id="and-wins-over-the-others"),
        pytest.param({"Wait": QUEUE_SKIP, "Fit": QUEUE}, SubQueue.BACKOFF, id="queue-of-another-waits"),
        pytest.param({"Wait": QUEUE_SKIP, "Fit": QUEUE_SKIP}, SubQueue.UNSCHEDULABLE, id="none-keeps-it"),
    ],
)
def test_pending_plugins(make: Any, hints: dict[str, Any], place: SubQueue) -> None:
    def saying(plugin: str) -> ClusterEventWithHint:
        return on(R.NODE, A.ADD, lambda pod, old, new: hints[plugin])

    q = queue(saying("Fit"), more={"Wait": (saying("Wait"),)})
    entry = popped(q, make.pod(), 0)
    reject(q, entry, 0, "Fit", pending=("Wait",))
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 1)
    assert entry.place is place


def test_a_pod_of_an_unknown_profile_is_moved_by_any_event_of_interest(make: Any) -> None:
    q = queue()
    entry = popped(q, make.pod(schedulerName="nobody"), 0)
    reject(q, entry, 0, "Fit")
    assert q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 1) == [entry]


# Updates of waiting pods.


@pytest.mark.parametrize(
    ("action", "change", "place"),
    [
        pytest.param(
            A.UPDATE_POD_TOLERATION, {"tolerations": [{"operator": "Exists"}]}, SubQueue.BACKOFF, id="registered"
        ),
        pytest.param(
            A.UPDATE_POD_LABEL, {"tolerations": [{"operator": "Exists"}]}, SubQueue.UNSCHEDULABLE, id="not-registered"
        ),
        pytest.param(A.UPDATE, {"status": {"reason": "x"}}, SubQueue.BACKOFF, id="a-general-update"),
        pytest.param(A.UPDATE_POD_LABEL, {"status": {"reason": "x"}}, SubQueue.UNSCHEDULABLE, id="of-no-interest"),
    ],
)
def test_an_update_of_a_waiting_pod_asks_the_hints(
    make: Any, action: ActionType, change: dict[str, Any], place: SubQueue
) -> None:
    q = queue(on(R.POD, action))
    entry = popped(q, make.pod(), 0)
    reject(q, entry, 0, "Fit")
    assert q.update(make.pod(), make.pod(**change), 1) is place
    assert entry.pod.raw == make.pod(**change).raw


def test_after_an_update_a_pod_is_found_under_its_new_shape(make: Any) -> None:
    q = queue(on(R.NODE, A.ADD, lambda pod, old, new: QUEUE if pod.labels else QUEUE_SKIP, by_signature=True))
    for name in "ab":
        reject(q, popped(q, make.pod(name), 0), 0, "Fit")
    q.update(make.pod("b"), make.pod("b", metadata={"labels": {"x": "y"}}), 1)
    moved = q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 2)
    assert [entry.pod.name for entry in moved] == ["b"]


def test_an_update_in_backoff_changes_no_place(make: Any) -> None:
    q = queue()
    entry = popped(q, make.pod(), 0)
    reject(q, entry, 0)
    assert q.update(make.pod(), make.pod(tolerations=[{"operator": "Exists"}]), 1) is SubQueue.ERROR_BACKOFF


# In flight.


@pytest.mark.parametrize(
    ("during", "place"),
    [
        pytest.param([], SubQueue.UNSCHEDULABLE, id="nothing-happened"),
        pytest.param([NODE_ADD], SubQueue.BACKOFF, id="an-event-that-helps-is-not-lost"),
        pytest.param([LABELLED, ASSIGNED_POD_ADD], SubQueue.UNSCHEDULABLE, id="events-that-do-not"),
        pytest.param([LABELLED, NODE_ADD, LABELLED], SubQueue.BACKOFF, id="one-of-several"),
    ],
)
def test_events_during_an_attempt(make: Any, during: list[ClusterEvent], place: SubQueue) -> None:
    q = queue(more={"Other": (on(R.NODE, A.ALL), on(R.POD, A.ALL))})
    entry = popped(q, make.pod(), 0)
    for event in during:
        q.move_all_to_active_or_backoff(event, None, make.node(), 1)
    assert reject(q, entry, 2, "Fit") is place


def test_events_before_the_pop_are_not_asked_again(make: Any) -> None:
    q = queue()
    q.add(make.pod("a"), 0)
    q.add(make.pod("b"), 1)
    first = q.pop(2)
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 3)
    second = q.pop(4)
    assert first is not None
    assert second is not None
    assert reject(q, second, 5, "Fit") is SubQueue.UNSCHEDULABLE
    assert reject(q, first, 6, "Fit") is SubQueue.BACKOFF


def test_events_are_kept_only_for_pods_in_flight(make: Any) -> None:
    q = queue()
    entries = [popped(q, make.pod(str(n)), n) for n in range(3)]
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 5)
    late = popped(q, make.pod("late"), 6)
    for _ in range(600):
        q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 7)
    assert q.events_kept == 601
    for entry in entries:
        q.done(entry.uid, 8)
    assert q.events_kept == 600
    q.done(late.uid, 9)
    assert q.events_kept == 0
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 10)
    assert q.events_kept == 0


def test_events_before_an_attempt_began_do_not_wake_its_pod(make: Any) -> None:
    q = queue()
    first, second, third = (popped(q, make.pod(name), 0) for name in "123")
    q.observation = 7
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 1)
    q.observation = 0
    assert reject(q, first, 2, "Fit", seen=6) is SubQueue.BACKOFF
    assert reject(q, second, 3, "Fit", seen=7) is SubQueue.UNSCHEDULABLE
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 4)  # an event without observation number
    assert reject(q, third, 5, "Fit", seen=7) is SubQueue.BACKOFF


def test_events_nobody_registered_are_not_kept(make: Any) -> None:
    q = queue()
    popped(q, make.pod(), 0)
    q.move_all_to_active_or_backoff(ASSIGNED_POD_ADD, None, make.pod("x"), 1)
    assert q.events_kept == 0


def test_an_update_during_the_attempt_is_judged_when_the_pod_comes_back(make: Any) -> None:
    q = queue(on(R.POD, A.UPDATE_POD_TOLERATION))
    entry = popped(q, make.pod(), 0)
    changed = make.pod(tolerations=[{"operator": "Exists"}])
    assert q.update(make.pod(), changed, 1) is SubQueue.IN_FLIGHT
    entry.pod = changed
    assert reject(q, entry, 2, "Fit") is SubQueue.BACKOFF


def test_an_event_for_a_pending_plugin_during_the_attempt_skips_backoff(make: Any) -> None:
    q = queue(more={"Wait": (on(R.NODE, A.UPDATE_NODE_LABEL),)})
    entry = popped(q, make.pod(), 0)
    for event in (NODE_ADD, LABELLED):
        q.move_all_to_active_or_backoff(event, None, make.node(), 1)
    assert reject(q, entry, 2, "Fit", pending=("Wait",)) is SubQueue.ACTIVE


def test_with_hints_that_always_say_queue_any_move_request_requeues(make: Any) -> None:
    # By the older moveRequestCycle rule, the pod goes to backoffQ after a move request since its pop.
    for requested in (False, True):
        q = queue(on(R.NODE, A.ALL))
        entry = popped(q, make.pod(), 0)
        if requested:
            q.move_all_to_active_or_backoff(LABELLED, make.node(), make.node(), 1)
        assert reject(q, entry, 2, "Fit") is (SubQueue.BACKOFF if requested else SubQueue.UNSCHEDULABLE)


def test_a_pod_that_failed_with_an_error_is_tried_again_without_any_event(make: Any) -> None:
    q = queue()
    assert reject(q, popped(q, make.pod(), 0), 1) is SubQueue.ERROR_BACKOFF


def test_a_pod_added_again_meanwhile_is_not_put_back(make: Any) -> None:
    q = queue()
    entry = popped(q, make.pod(), 0)
    q.add(make.pod(uid="another"), 1)
    assert reject(q, entry, 2, "Fit") is None
    assert q.in_flight(entry.uid) is None
    assert q.counts()[SubQueue.ACTIVE] == 1


def test_the_second_entry_of_a_pod_in_flight_is_dropped(make: Any) -> None:
    q = queue()
    popped(q, make.pod(), 0)
    q.add(make.pod(), 1)
    q.add(make.pod("b"), 2)
    entry = q.pop(3)
    assert entry is not None
    assert entry.pod.name == "b"
    assert q.pop(4) is None


def test_done_may_come_twice(make: Any) -> None:
    q = queue()
    entry = popped(q, make.pod(), 0)
    q.done(entry.uid, 1)
    q.done(entry.uid, 2)
    assert entry.place is SubQueue.OUTSIDE


def test_a_pop_forgets_who_rejected_the_pod(make: Any) -> None:
    q = queue()
    entry = popped(q, make.pod(), 0)
    reject(q, entry, 1, "Fit", pending=("Wait",))
    q.activate([entry.pod], 2)
    assert q.pop(3) is entry
    assert not entry.unschedulable_plugins
    assert not entry.pending_plugins
    assert entry.initial_attempt == 0
    assert entry.attempts == 2


# Activate and the flush timeout.


@pytest.mark.parametrize("plugins", [("Fit",), ()], ids=["from-unschedulable", "from-backoff"])
def test_activate_skips_backoff(make: Any, plugins: tuple[str, ...]) -> None:
    q = queue()
    entry = popped(q, make.pod(), 0)
    reject(q, entry, 1, *plugins)
    assert q.activate([entry.pod, make.pod("unknown")], 2) == [entry]
    assert entry.place is SubQueue.ACTIVE


def test_activate_of_a_pod_in_flight_requeues_that_pod_when_it_comes_back(make: Any) -> None:
    q = queue()
    entry, other = popped(q, make.pod("a"), 0), popped(q, make.pod("b"), 1)
    assert q.activate([entry.pod], 2) == []
    assert reject(q, other, 3, "Fit") is SubQueue.UNSCHEDULABLE
    assert reject(q, entry, 4, "Fit") is SubQueue.BACKOFF


def test_pods_left_unschedulable_for_more_than_five_minutes_are_moved(make: Any) -> None:
    q = queue()
    early, late = popped(q, make.pod("a"), 0), popped(q, make.pod("b"), 0)
    reject(q, early, 10 * SECOND, "Fit")
    reject(q, late, 11 * SECOND, "Fit")
    assert q.next_leftover() == 310 * SECOND
    assert q.flush_unschedulable_leftover(310 * SECOND) == []
    assert q.flush_unschedulable_leftover(310 * SECOND + 1) == [early]
    assert early.place is SubQueue.ACTIVE
    assert q.next_leftover() == 311 * SECOND


def test_a_pod_counts_as_flushed_until_its_next_attempt_has_failed(make: Any) -> None:
    q = queue()
    entry = popped(q, make.pod("a"), 0)
    assert not entry.was_flushed
    reject(q, entry, 1 * SECOND, "Fit")
    assert not entry.was_flushed
    q.flush_unschedulable_leftover(302 * SECOND)
    assert q.pop(302 * SECOND) is entry
    assert entry.was_flushed
    reject(q, entry, 303 * SECOND, "Fit")
    assert not entry.was_flushed


def test_the_timeout_does_not_move_gated_pods(make: Any) -> None:
    q = queue(pre_enqueue={"Gates": lambda pod: unschedulable("gated")})
    assert q.add(make.pod(), 0) is SubQueue.GATED
    assert q.next_leftover() is None
    assert q.flush_unschedulable_leftover(1000 * SECOND) == []
    assert q.counts()[SubQueue.GATED] == 1


def test_by_1_37_the_timeout_asks_gated_pods_again(make: Any) -> None:
    requests = []

    def gate(pod: Pod) -> Status | None:
        requests.append(pod.name)
        return unschedulable("gated") if len(requests) < 3 else None

    q = SchedulingQueue(
        QueueSettings(gated_pods_flushed=True),
        hints={"default-scheduler": {"Gates": (on(R.POD, A.DELETE),)}},
        pre_enqueue={"default-scheduler": {"Gates": gate}},
    )
    assert q.add(make.pod(), 0) is SubQueue.GATED
    assert q.next_leftover() == 300 * SECOND
    assert q.flush_unschedulable_leftover(301 * SECOND) == []
    assert q.next_leftover() is None, "nobody waits for a pod that the timeout does not free"
    assert [entry.place for entry in q.flush_unschedulable_leftover(331 * SECOND)] == [SubQueue.ACTIVE]


@pytest.mark.parametrize("kept", [False, True])
def test_by_1_37_a_gated_pod_is_nominated(make: Any, kept: bool) -> None:
    q = SchedulingQueue(
        QueueSettings(gated_nominations_kept=kept),
        pre_enqueue={"default-scheduler": {"Gates": lambda pod: unschedulable("gated")}},
    )
    nominated: list[str] = []
    q.on_nominated = lambda pod: nominated.append(pod.nominated_node_name)
    assert q.add(attrs.evolve(make.pod(), nominated_node_name="n"), 0) is SubQueue.GATED
    assert nominated == (["n"] if kept else [])


# PreEnqueue.


def test_a_gated_pod_waits_outside_and_says_why(make: Any) -> None:
    q = queue(pre_enqueue={"A": lambda pod: None, "Gates": lambda pod: unschedulable("waiting for gates")})
    assert q.add(make.pod(), 0) is SubQueue.GATED
    entry = q.entry("d/p")
    assert entry is not None
    assert (entry.gating_plugin, entry.unschedulable_plugins) == ("Gates", {"Gates"})
    assert entry.gating_status is not None
    assert entry.gating_status.reasons == ("waiting for gates",)
    assert q.pop(1) is None


def test_pre_enqueue_that_raises_gates_the_pod_with_an_error(make: Any) -> None:
    def broken(pod: Pod) -> Status | None:
        raise RuntimeError("boom")

    faults: list[str] = []
    q = queue(pre_enqueue={"Gates": broken}, on_fault=lambda plugin, key, fault: faults.append(f"{plugin} {key}"))
    assert q.add(make.pod(), 0) is SubQueue.GATED
    entry = q.entry("d/p")
    assert entry is not None
    assert entry.gating_status is not None
    assert entry.gating_status.code.label == "Error"
    assert faults == ["Gates d/p"]


class Gate:
    """A PreEnqueue plugin that is open or shut, and counts its calls."""

    def __init__(self) -> None:
        self.shut = True
        self.requests = 0

    def __call__(self, pod: Pod) -> Status | None:
        self.requests += 1
        return unschedulable("shut") if self.shut else None


@pytest.mark.parametrize(
    ("event", "requests", "place"),
    [
        pytest.param(NODE_ADD, 2, SubQueue.ACTIVE, id="its-own-event-asks-the-gating-plugin-again"),
        pytest.param(LABELLED, 1, SubQueue.GATED, id="an-event-only-others-registered-does-not"),
    ],
)
def test_events_and_gated_pods(make: Any, event: ClusterEvent, requests: int, place: SubQueue) -> None:
    gate = Gate()
    q = queue(on(R.NODE, A.UPDATE_NODE_LABEL), pre_enqueue={"Gates": gate}, more={"Gates": (on(R.NODE, A.ADD),)})
    q.add(make.pod(), 0)
    gate.shut = False
    q.move_all_to_active_or_backoff(event, None, make.node(), 1)
    assert gate.requests == requests
    entry = q.entry("d/p")
    assert entry is not None
    assert entry.place is place


def test_a_pod_freed_in_the_first_second_of_the_clock_does_not_back_off(make: Any) -> None:
    gate = Gate()
    q = queue(pre_enqueue={"Gates": gate}, more={"Gates": (on(R.NODE, A.ADD),)}, pop_from_backoff=True)
    q.add(make.pod(), 0)
    gate.shut = False
    (entry,) = q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 1)
    assert entry.place is SubQueue.ACTIVE


def test_the_plugin_that_gated_last_is_asked_first(make: Any) -> None:
    order: list[str] = []

    def plugin(name: str, shut: list[bool]) -> Callable[[Pod], Status | None]:
        def ask(pod: Pod) -> Status | None:
            order.append(name)
            return unschedulable("shut") if shut.pop(0) else None

        return ask

    q = queue(
        pre_enqueue={"A": plugin("A", [False, False]), "B": plugin("B", [True, True])}, more={"B": (on(R.NODE, A.ADD),)}
    )
    q.add(make.pod(), 0)
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 1)
    assert order == ["A", "B", "B"]


@pytest.mark.parametrize(
    ("pop_from_backoff", "requests"),
    [
        pytest.param(True, [1, 2, 2], id="on-the-way-into-backoff-if-it-can-be-popped-from-there"),
        pytest.param(False, [1, 1, 2], id="on-the-way-out-of-backoff-otherwise"),
    ],
)
def test_when_pre_enqueue_is_asked(make: Any, pop_from_backoff: bool, requests: list[int]) -> None:
    gate = Gate()
    gate.shut = False
    q = queue(pre_enqueue={"Gates": gate}, pop_from_backoff=pop_from_backoff)
    entry = popped(q, make.pod(), 0)
    counts = [gate.requests]
    reject(q, entry, 1)
    counts.append(gate.requests)
    q.flush_backoff(5 * SECOND)
    counts.append(gate.requests)
    assert counts == requests
    assert entry.place is SubQueue.ACTIVE


@pytest.mark.parametrize("pop_from_backoff", [True, False])
def test_a_pod_gated_while_it_waits_leaves_backoff(make: Any, pop_from_backoff: bool) -> None:
    gate = Gate()
    gate.shut = False
    q = queue(pre_enqueue={"Gates": gate}, pop_from_backoff=pop_from_backoff)
    entry = popped(q, make.pod(), 0)
    gate.shut = True
    reject(q, entry, 1)
    q.flush_backoff(5 * SECOND)
    assert entry.place is SubQueue.GATED
    assert q.counts()[SubQueue.ERROR_BACKOFF] == 0


def test_the_last_gate_taken_away_lets_the_pod_in(make: Any) -> None:
    def gates(pod: Pod) -> Status | None:
        return unschedulable("gates") if pod.pod_spec.scheduling_gates else None

    q = queue(on(R.POD, A.UPDATE_POD_SCHEDULING_GATES_ELIMINATED), plugin="Gates", pre_enqueue={"Gates": gates})
    old, new = make.pod(schedulingGates=[{"name": "g"}]), make.pod()
    assert q.add(old, 0) is SubQueue.GATED
    assert q.update(old, new, 1) is SubQueue.ACTIVE
    entry = q.pop(2)
    assert entry is not None
    assert entry.timestamp == 0


# Nominations.


def test_a_pod_that_comes_with_a_nomination_is_told_of_when_it_is_active(make: Any) -> None:
    def gates(pod: Pod) -> Status | None:
        return unschedulable("gates") if pod.pod_spec.scheduling_gates else None

    q = queue(pre_enqueue={"Gates": gates})
    reported: list[str] = []
    q.on_nominated = lambda pod: reported.append(pod.name)
    nominated = {"nominatedNodeName": "n1"}
    q.add(make.pod("p", status=nominated), 0)
    q.add(make.pod("gated", status=nominated, schedulingGates=[{"name": "g"}]), 0)
    q.add(make.pod("q"), 0)
    assert reported == ["p"]
    popped_pod = q.pop(1)
    assert popped_pod is not None
    q.done(popped_pod.uid, 2)
    q.update(make.pod("p", status=nominated), make.pod("p", status=nominated, metadata={"labels": {"a": "b"}}), 3)
    assert reported == ["p", "p"]  # it is in no queue, so its update adds it


# History, control.


def test_every_move_is_recorded_with_what_moved_it(make: Any) -> None:
    moves: list[Move] = []
    q = queue(on(R.NODE, A.ADD, lambda pod, old, new: QUEUE), recorder=moves.append)
    entry = popped(q, make.pod(), 0)
    reject(q, entry, 1, "Fit")
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 2)
    q.flush_backoff(3 * SECOND)
    assert q.pop(4 * SECOND) is entry
    q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 5 * SECOND)
    reject(q, entry, 6 * SECOND, "Fit")
    q.delete(entry.pod, 7 * SECOND)
    assert [move.stayed for move in moves] == [0, 0, 1, 1, 3 * SECOND - 2, SECOND, 2 * SECOND, SECOND]
    reported = [(m.source.value, m.target.value, m.event, m.plugin, m.seen) for m in moves]
    assert reported == [
        ("outside", "active", "UnschedulablePodAdd", "", ""),
        ("active", "in_flight", "", "", ""),
        ("in_flight", "unschedulable", "ScheduleAttemptFailure", "", ""),
        ("unschedulable", "backoff", "NodeAdd", "Fit", ""),
        ("backoff", "active", "BackoffComplete", "", ""),
        ("active", "in_flight", "", "", ""),
        ("in_flight", "backoff", "ScheduleAttemptFailure", "Fit", "NodeAdd"),
        ("backoff", "outside", "UnschedulablePodDelete", "", ""),
    ]


def test_a_pod_can_be_moved_by_hand(make: Any) -> None:
    q = queue()
    q.add(make.pod(), 0)
    assert not q.force("d/unknown", SubQueue.ACTIVE, 1)
    for place in (SubQueue.UNSCHEDULABLE, SubQueue.ACTIVE):
        assert q.force("d/p", place, 1)
        assert [entry.key for entry in q.entries(place)] == ["d/p"]


def test_new_settings_and_registrations_take_effect(make: Any) -> None:
    q = queue()
    waiting, later = popped(q, make.pod("a"), 0), popped(q, make.pod("b"), 0)
    reject(q, waiting, 1, "Fit")
    q.add(make.pod("c"), 1)
    q.reconfigure(
        QueueSettings(initial_backoff=4 * SECOND, pop_from_backoff_q=False),
        sort_key=lambda entry: entry.key,
        hints={"default-scheduler": {"Fit": (on(R.NODE, A.UPDATE_NODE_LABEL),)}},
    )
    assert q.move_all_to_active_or_backoff(NODE_ADD, None, make.node(), 2) == []
    assert q.move_all_to_active_or_backoff(LABELLED, None, make.node(), 2) == [waiting]
    reject(q, later, 3)
    assert q.backoff_until(later) == 3 + 4 * SECOND
    assert q.counts()[SubQueue.ACTIVE] == 1


def test_expired_backoffs_are_flushed_in_portions_in_the_order_of_a_single_flush(make: Any) -> None:
    def backed_off() -> SchedulingQueue:
        q = queue()
        for name in "abcde":
            reject(q, popped(q, make.pod(name), 0), 300 * MS)
        return q

    now = 3600 * SECOND
    at_once = [entry.pod.name for entry in backed_off().flush_backoff(now)]
    q, portions = backed_off(), []
    while q.backoff_expired(now):
        portions.append([entry.pod.name for entry in q.flush_backoff(now, 2)])
    assert [len(portion) for portion in portions] == [2, 2, 1]
    assert [name for portion in portions for name in portion] == at_once
